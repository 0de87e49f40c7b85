// Code of packages that runs in threads of its own, because it may end its thread.
//
// Threads: any, without the lock of the cache: what runs there may never end.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"

namespace rove::code {

// A thread that runs one piece of work after the other, and stays in between: others may hold addresses of its thread-local objects. Used by
// one thread at a time.
//
// Each piece of work finds the thread as the first one did, in all that ThreadState has, in cancellation and in arithmetic. Values under
// pthread_key_create()'s keys stay where the work has succeeded, and are never destroyed, as main()'s are not; where it has failed they are gone
// when run() returns, because what destroys them may be code that goes then.
class OwnThread {
public:
    // overloaded: there is no thread, or no memory for one.
    [[nodiscard]] static Result<std::unique_ptr<OwnThread>> start();
    // Ends it, and waits for that. Precondition: none of its work still runs.
    ~OwnThread();
    OwnThread(const OwnThread&) = delete;

    // Runs `work`, which is a `what` of that package (with its node's name), and waits until it has returned, thrown or ended its thread.
    // Throws nothing. Precondition: it has not ended.
    [[nodiscard]] Status run(const std::string& package, const char* what, const std::function<void()>& work);
    // From now on its thread-local objects stay, as far as that can be had, where work ends the thread.
    void keep_objects();
    [[nodiscard]] bool keeps_objects() const;
    // Work has ended the thread: nothing more can be run there.
    [[nodiscard]] bool has_ended() const;
    // Work has changed the thread in a way that cannot be changed back: other packages' code should run elsewhere.
    [[nodiscard]] bool is_worn() const;
    // The kernel's number for it.
    [[nodiscard]] pid_t id() const;

private:
    struct Shared;
    OwnThread() = default;
    std::unique_ptr<Shared> shared_;
};

// The same in a thread that ends then. overloaded: there was none, and nothing has run.
[[nodiscard]] Status in_own_thread(const std::string& package, const char* what, const std::function<void()>& work);

// Whether the kernel still has that thread of this process.
[[nodiscard]] bool is_alive(pid_t kernel_id);

}  // namespace rove::code
