// Code of packages that runs in threads of its own, because it may end its thread.
//
// Threads: any, without the lock of the cache, because the code may never end.
//
// Invariant: an OwnThread runs one piece of work at a time, and none after work has ended the thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"

namespace rove::code {

// A thread that runs one piece of work after the other, and is kept in between, because other code may hold addresses of its thread-local
// objects. Used by one thread at a time.
//
// Each piece of work begins with the same state of the thread: all of ThreadState, cancellation, and arithmetic. Values under
// pthread_key_create()'s keys are kept if the work has succeeded, and are never destroyed, as main()'s are not; if it has failed they are
// removed when run() returns, because their destructors may be in code that is released then.
class OwnThread {
public:
    // overloaded: there is no thread, or no memory for one.
    [[nodiscard]] static Result<std::unique_ptr<OwnThread>> start();
    // Ends the thread, and waits for that. Precondition: none of its work still runs.
    ~OwnThread();
    OwnThread(const OwnThread&) = delete;

    // Runs `work`, which is a `what` of that package (with its node's name), and waits until it has returned, thrown or ended its thread.
    // Throws nothing. Precondition: the thread has not ended.
    [[nodiscard]] Status run(const std::string& package, const char* what, const std::function<void()>& work);
    // From now on its thread-local objects are kept, as far as possible, if work ends the thread.
    void keep_objects();
    [[nodiscard]] bool keeps_objects() const;
    // Whether work has ended the thread: nothing more can be run there.
    [[nodiscard]] bool has_ended() const;
    // Whether work has changed the thread in a way that cannot be undone: other packages' code should run in another thread.
    [[nodiscard]] bool is_worn() const;
    // The kernel's number for the thread.
    [[nodiscard]] pid_t id() const;

private:
    struct Shared;
    OwnThread() = default;
    std::unique_ptr<Shared> shared_;
};

// OwnThread::run(), in a new thread that ends afterwards. overloaded: there was no thread, and nothing has run.
[[nodiscard]] Status in_own_thread(const std::string& package, const char* what, const std::function<void()>& work);

// Whether the kernel still has that thread of this process.
[[nodiscard]] bool is_alive(pid_t kernel_id);

}  // namespace rove::code
