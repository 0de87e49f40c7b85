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

}  // namespace

// What the thread and its maker both use, until the kernel has the thread no more.
struct OwnThread::Shared {
    Shared(const std::string& of, const char* is, const std::function<void()>& runs)
        : package(of), what(is), work(runs) {}
    const std::string package;  // its name, and its node's
    const char* const what;
    const std::function<void()>& work;
    const pid_t process = getpid();
    Status done = fail(ErrorCode::failed, "a {} of package {} ended its thread", what, package);
    std::atomic<pid_t> thread{0};  // the kernel's number for it; 0: not begun
    using Word = std::counting_semaphore<2>;
    Word worked{0};       // `work` has ended, however that came
    Word may_destroy{0};  // its thread-local objects
    Word destroyed{0};
    Word may_end{0};

    static void* begin(void* shared);
    static void end(void* shared);

    // It has forked, and the child's only thread would end the program there as if that were its own.
    void stay_in_parent() const {
        if (getpid() != process) end_child_of(fmt::format("a {} of package {}", what, package).c_str());
    }
    // The maker's: until the thread has told, or has ended without a word, as by a system call.
    void wait_for(Word& word) {
        while (!word.try_acquire_for(kOwnLook) && (thread == 0 || is_alive(thread))) {
        }
        (void)word.try_acquire();  // it may have told since the last look: what it did is seen here from then on
    }
    // Describes the exception that `work` let out; in fixed words if there is no memory for others.
    template <typename Words>
    void say_how(const Words& words) {
        try {
            done = words();
        } catch (const std::bad_alloc&) {
            done = tl::unexpected<Error>(Error(ErrorCode::failed, "it threw"));
        }
    }
};

namespace {

// The key whose destructor runs at a thread's end, however it comes: nothing unwinds a C function that ends its thread. By then the
// thread's thread_local objects have been destroyed. None: shipped code has all keys that a process may have, and the end is seen later.
const std::optional<pthread_key_t>& end_of_own_thread(void (*end)(void*)) {
    static constinit MadeOnce<const std::optional<pthread_key_t>> key;
    return key.get([end] {
        pthread_key_t made{};
        const bool is_made = pthread_key_create(&made, end) == 0;
        return new const std::optional<pthread_key_t>(is_made ? std::optional(made) : std::nullopt);
    });
}

}  // namespace

void OwnThread::Shared::end(void* argument) {
    auto& shared = *static_cast<Shared*>(argument);
    shared.stay_in_parent();
    shared.worked.release();
    shared.destroyed.release();
    shared.may_end.acquire();
}

void* OwnThread::Shared::begin(void* argument) {
    auto& shared = *static_cast<Shared*>(argument);
    shared.thread = gettid();
    arch::FloatControls::reset();  // as start_thread() does
    if (const auto& key = end_of_own_thread(&end)) (void)pthread_setspecific(*key, &shared);
    try {
        shared.work();
        shared.done = {};
    } catch (const abi::__forced_unwind&) {
        shared.stay_in_parent();
        throw;
    } catch (const std::exception& error) {
        shared.say_how([&] {
            return fail(ErrorCode::failed, "a {} of package {} let an exception out: {}", shared.what, shared.package,
                        words_of(error));
        });
    } catch (...) {
        shared.say_how([&] {
            return fail(ErrorCode::failed, "a {} of package {} let an exception out", shared.what, shared.package);
        });
    }
    shared.stay_in_parent();
    shared.worked.release();
    shared.may_destroy.acquire();
    return nullptr;
}

void prepare_own_threads() {
    (void)end_of_own_thread(&OwnThread::Shared::end);
}

bool is_alive(pid_t kernel_id) {
    return syscall(SYS_tgkill, getpid(), kernel_id, 0) == 0;
}

// Nothing joins the thread: what runs there may detach it, and a std::thread keeps what it was given where its thread does not return.
Result<std::unique_ptr<OwnThread>> OwnThread::run(const std::string& package, const char* what,
                                                  const std::function<void()>& work) try {
    std::unique_ptr<OwnThread> made(new OwnThread);
    made->shared_ = std::make_unique<Shared>(package, what, work);
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    const int error = pthread_create(&thread, &detached, &Shared::begin, made->shared_.get());
    pthread_attr_destroy(&detached);
    if (error != 0) {
        made->shared_.reset();
        return fail(ErrorCode::overloaded, "there is no thread for a {} of package {} now ({}); call it later", what,
                    package, std::generic_category().message(error));
    }
    made->shared_->wait_for(made->shared_->worked);
    return made;
} catch (const std::bad_alloc&) {
    return tl::unexpected<Error>(no_memory());
}

const Status& OwnThread::done() const {
    return shared_->done;
}

void OwnThread::destroy_objects() {
    shared_->may_destroy.release();
    shared_->wait_for(shared_->destroyed);
}

OwnThread::~OwnThread() {
    if (!shared_) return;
    shared_->may_destroy.release();
    shared_->may_end.release();
    // It may be in its package's code for a moment still: for longer where that has thread-local objects to destroy.
    for (int looks = 0; is_alive(shared_->thread); ++looks)
        if (looks < kLooksAtOnce)
            sched_yield();
        else
            std::this_thread::sleep_for(kOwnLook);
}

Status in_own_thread(const std::string& package, const char* what, const std::function<void()>& work) {
    ROVE_TRY(std::unique_ptr<OwnThread> thread, OwnThread::run(package, what, work));
    Status done = thread->done();
    thread.reset();
    return done;
}

}  // namespace rove::code
