#include "code/own_thread.hpp"

#include <cxxabi.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <optional>
#include <semaphore>
#include <system_error>
#include <thread>
#include <utility>

#include "base/float_environment.hpp"
#include "base/fork.hpp"
#include "base/made_once.hpp"
#include "base/words_of.hpp"

namespace rove::code {

namespace {

constexpr auto kOwnLook = std::chrono::milliseconds(10);
constexpr int kLooksAtOnce = 100;

// What runs in a thread of its own, and how it ended.
struct OwnWork {
    const std::string& package;  // its name, and its node's
    const char* what;
    const std::function<void()>& work;
    const pid_t process = getpid();
    Status done = fail(ErrorCode::failed, "a {} of package {} ended its thread", what, package);
    std::atomic<pid_t> thread{0};  // the kernel's number for it; 0: not begun
    std::binary_semaphore ended{0};
};

// It has forked, and the child's only thread would end the program there as if that were its own.
void stay_in_parent(const OwnWork& own) {
    if (getpid() != own.process) end_child_of(fmt::format("a {} of package {}", own.what, own.package).c_str());
}

// The key whose destructor tells of a thread's end, however it comes: nothing unwinds a C function that ends its thread. None: shipped
// code has all that a process may have, and the end is seen later.
const std::optional<pthread_key_t>& end_of_own_work() {
    static constinit MadeOnce<const std::optional<pthread_key_t>> key;
    return key.get([] {
        pthread_key_t made{};
        const bool is_made = pthread_key_create(&made, [](void* argument) {
                                 auto& own = *static_cast<OwnWork*>(argument);
                                 stay_in_parent(own);
                                 own.ended.release();
                             }) == 0;
        return new const std::optional<pthread_key_t>(is_made ? std::optional(made) : std::nullopt);
    });
}

// Describes the exception that it let out; in fixed words if there is no memory for others.
template <typename Words>
void say_how(OwnWork& own, const Words& words) {
    try {
        own.done = words();
    } catch (const std::bad_alloc&) {
        own.done = tl::unexpected<Error>(Error(ErrorCode::failed, "it threw"));
    }
}

void* run_own(void* argument) {
    auto& own = *static_cast<OwnWork*>(argument);
    own.thread = gettid();
    arch::FloatControls::reset();  // as start_thread() does
    if (const auto& key = end_of_own_work()) (void)pthread_setspecific(*key, &own);
    try {
        own.work();
        own.done = {};
    } catch (const abi::__forced_unwind&) {
        stay_in_parent(own);
        throw;
    } catch (const std::exception& error) {
        say_how(own, [&] {
            return fail(ErrorCode::failed, "a {} of package {} let an exception out: {}", own.what, own.package,
                        words_of(error));
        });
    } catch (...) {
        say_how(own, [&] {
            return fail(ErrorCode::failed, "a {} of package {} let an exception out", own.what, own.package);
        });
    }
    stay_in_parent(own);
    return nullptr;
}

}  // namespace

bool is_alive(pid_t kernel_id) {
    return syscall(SYS_tgkill, getpid(), kernel_id, 0) == 0;
}

// Nothing joins the thread: what runs there may detach it, and a std::thread keeps what it was given where its thread does not return.
Status in_own_thread(const std::string& package, const char* what, const std::function<void()>& work) try {
    OwnWork own{.package = package, .what = what, .work = work};
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    const int error = pthread_create(&thread, &detached, &run_own, &own);
    pthread_attr_destroy(&detached);
    if (error != 0)
        return fail(ErrorCode::overloaded, "there is no thread for a {} of package {} now ({}); call it later", what,
                    package, std::generic_category().message(error));
    // A thread that ends itself by a system call runs no destructors.
    while (!own.ended.try_acquire_for(kOwnLook) && (own.thread == 0 || is_alive(own.thread))) {
    }
    (void)own.ended.try_acquire();  // it may have told since the last look: what it did is seen here from then on
    // It has told, and may be in its package's code for a moment still: for longer where that has thread-local objects to destroy.
    for (int looks = 0; is_alive(own.thread); ++looks)
        if (looks < kLooksAtOnce)
            sched_yield();
        else
            std::this_thread::sleep_for(kOwnLook);
    return std::move(own.done);
} catch (const std::bad_alloc&) {
    return tl::unexpected<Error>(no_memory());
}

}  // namespace rove::code
