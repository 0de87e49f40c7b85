// Code of a package that runs in a thread of its own, because it may end that thread.
//
// Threads: any, without the lock of the cache: what runs there may never end.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"

namespace rove::code {

// A thread that stays when its work is done, because others may hold addresses of its thread-local objects: natively they may, of the
// thread that runs a program's constructors. Used by one thread at a time.
class OwnThread {
public:
    // Runs `work`, which is a `what` of that package (with its node's name), and waits until it has returned, thrown or ended its thread.
    // It throws nothing. overloaded: no thread or no memory for it, and nothing of it has run: null. Else there is a thread, and how its
    // work has ended is done().
    [[nodiscard]] static Result<std::unique_ptr<OwnThread>> run(const std::string& package, const char* what,
                                                                const std::function<void()>& work);
    // Ends it, and waits for that.
    ~OwnThread();
    OwnThread(const OwnThread&) = delete;

    [[nodiscard]] const Status& done() const;
    // Destroys its thread-local objects. Their memory stays as long as this. Once.
    void destroy_objects();

private:
    friend void prepare_own_threads();
    struct Shared;
    OwnThread() = default;
    std::unique_ptr<Shared> shared_;
};

// As OwnThread::run(), and ends the thread.
[[nodiscard]] Status in_own_thread(const std::string& package, const char* what, const std::function<void()>& work);

// Prepares for OwnThread, in a process in which no shipped code has run yet: the memory of thread-local objects is freed in the order in
// which it became known that threads have some, and is to be freed last.
void prepare_own_threads();

// Whether the kernel still has that thread of this process.
[[nodiscard]] bool is_alive(pid_t kernel_id);

}  // namespace rove::code
