#include "code/own_thread.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bitset>
#include <climits>
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
#include "code/thread_state.hpp"
#include "wire/image.hpp"

namespace rove::code {

namespace {

constexpr auto kOwnLook = std::chrono::milliseconds(10);
constexpr int kLooksAtOnce = 100;

// Keys under which this thread has values.
using Keys = std::bitset<PTHREAD_KEYS_MAX>;
Keys keys_in_use() {
    Keys keys;
    for (pthread_key_t key = 0; key < keys.size(); ++key) keys[key] = pthread_getspecific(key) != nullptr;
    return keys;
}
void forget_keys_but(const Keys& kept) {
    const Keys now = keys_in_use();
    for (pthread_key_t key = 0; key < now.size(); ++key)
        if (now[key] && !kept[key]) (void)pthread_setspecific(key, nullptr);
}

// A worker is a batch thread (Workers::work), and threads that constructors start would inherit that.
void leave_batch() {
    const sched_param none{};
    if (sched_getscheduler(0) == SCHED_BATCH && sched_getscheduler(getpid()) != SCHED_BATCH)
        (void)pthread_setschedparam(pthread_self(), SCHED_OTHER, &none);
}

// libgcc keeps emulated thread-local objects under a key of its own, from the first one on. This makes the first one, so that no package is
// taken for the owner of the key.
void begin_thread_locals() {
    using GetAddress = void* (*)(void*);
    struct Control {  // as libgcc's __emutls_object
        std::size_t bytes, alignment;
        void *place, *value;
    };
    static constinit Control own{1, 1, nullptr, nullptr};
    if (const auto get = reinterpret_cast<GetAddress>(dlsym(RTLD_DEFAULT, wire::kGetThreadLocal)); get != nullptr)
        (void)get(&own);
}

}  // namespace

// State that the thread and its maker share until the kernel has ended the thread. All members except the words and `thread` belong to the
// thread while it works, and to the maker while the thread waits.
struct OwnThread::Shared {
    const pid_t process = getpid();
    std::atomic<pid_t> thread{0};  // the kernel's number for it; 0: not started
    using Word = std::counting_semaphore<2>;
    Word next{0};    // there is work, or the thread is to end
    Word worked{0};  // the work has ended, in whatever way
    Word may_end{0};
    Word ended{0};                                // it does nothing more; without a key only the kernel shows that
    const std::function<void()>* work = nullptr;  // null: it is to end
    std::string package;                          // the work's package, with its node
    const char* what = "";
    Status done;
    bool keeps_objects = false;
    bool has_ended = false;  // the work has ended the thread
    bool is_worn = false;
    Keys own_keys;                      // keys that are not its work's
    std::optional<ThreadState> before;  // the state before the work
    Keys keys_before;
    bool is_gone = false;  // the kernel has ended it, and may have given its number to another thread

    static void* begin(void* shared);
    static void end(void* shared);
    void do_work();
    void run_work();

    // To be called when the work ends: it may have forked, and the child's only thread would end the program there as if it were its own.
    void stay_in_parent() const {
        if (getpid() != process) end_child_of(fmt::format("a {} of package {}", what, package).c_str());
    }
    void tell_of_end() {
        has_ended = true;
        const bool stays = keeps_objects || done;
        if (stays && !done) forget_keys_but(keys_before);  // the code is released, and the thread is kept
        worked.release();
        if (!stays) return;
        may_end.acquire();
        forget_keys_but(own_keys);
    }
    // Called by the maker: waits until the thread has signalled. False: it has ended without a signal, as by a system call.
    [[nodiscard]] bool wait_for(Word& word) {
        while (!is_gone && !word.try_acquire_for(kOwnLook)) is_gone = thread != 0 && !is_alive(thread);
        return !is_gone || word.try_acquire();  // it may have signalled since the last check
    }
    // Describes the exception that `work` threw; in fixed words if there is no memory for others.
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

// The key whose destructor runs when a thread ends, in whatever way, because nothing unwinds a C function that ends its thread. None:
// shipped code has all keys that a process may have, and the end is noticed later.
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
    // Nothing has unwound the stack, so its objects are never destroyed; their memory exists for as long as the thread.
    if (shared.work != nullptr && !shared.has_ended) shared.tell_of_end();
    shared.ended.release();
}

void OwnThread::Shared::run_work() {
    try {
        (*work)();
        done = {};
    } catch (const abi::__forced_unwind&) {
        throw;
    } catch (const std::exception& error) {
        say_how([&] {
            return fail(ErrorCode::failed, "a {} of package {} let an exception out: {}", what, package,
                        words_of(error));
        });
    } catch (...) {
        say_how([&] {
            const std::string type = type_of_caught();
            return fail(ErrorCode::failed, "a {} of package {} let an exception out: {}", what, package,
                        type.empty() ? "one that is not of C++" : type);
        });
    }
}

void OwnThread::Shared::do_work() {
    before.emplace();
    keys_before = keys_in_use();
    try {
        run_work();
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, nullptr);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
        pthread_testcancel();  // otherwise the next work would be cancelled
    } catch (const abi::__forced_unwind&) {
        stay_in_parent();
        tell_of_end();  // objects are destroyed after the unwinding
        throw;
    }
    if (!done) forget_keys_but(keys_before);
    is_worn = !before->restore() || is_worn;
}

void* OwnThread::Shared::begin(void* argument) {
    auto& shared = *static_cast<Shared*>(argument);
    shared.thread = gettid();
    leave_batch();
    begin_thread_locals();
    if (const auto& key = end_of_own_thread(&end)) (void)pthread_setspecific(*key, &shared);
    shared.own_keys = keys_in_use();
    for (;;) {
        shared.next.acquire();
        if (shared.work == nullptr) {
            forget_keys_but(shared.own_keys);
            return nullptr;
        }
        arch::FloatControls::reset();  // as start_thread() does
        shared.do_work();
        shared.stay_in_parent();
        shared.worked.release();
    }
}

bool is_alive(pid_t kernel_id) {
    return syscall(SYS_tgkill, getpid(), kernel_id, 0) == 0;
}

// No thread joins it: code that runs there may detach it, and a std::thread would keep its argument if its thread never returns.
Result<std::unique_ptr<OwnThread>> OwnThread::start() try {
    std::unique_ptr<OwnThread> made(new OwnThread);
    auto shared = std::make_unique<Shared>();
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    const int error = pthread_create(&thread, &detached, &Shared::begin, shared.get());
    pthread_attr_destroy(&detached);
    if (error != 0) return fail(ErrorCode::overloaded, "{}", std::generic_category().message(error));
    made->shared_ = std::move(shared);
    return made;
} catch (const std::bad_alloc&) {
    return tl::unexpected<Error>(no_memory());
}

Status OwnThread::run(const std::string& package, const char* what, const std::function<void()>& work) try {
    Shared& shared = *shared_;
    shared.done = fail(ErrorCode::failed, "a {} of package {} ended its thread", what, package);
    shared.package = package;
    shared.what = what;
    shared.work = &work;
    shared.next.release();
    if (!shared.wait_for(shared.worked)) shared.has_ended = true;
    return std::move(shared.done);
} catch (const std::bad_alloc&) {  // no code has run
    return tl::unexpected<Error>(no_memory());
}

void OwnThread::keep_objects() {
    shared_->keeps_objects = true;
}

bool OwnThread::keeps_objects() const {
    return shared_->keeps_objects;
}

bool OwnThread::has_ended() const {
    return shared_->has_ended;
}

bool OwnThread::is_worn() const {
    return shared_->is_worn;
}

pid_t OwnThread::id() const {
    return shared_->thread;
}

OwnThread::~OwnThread() {
    if (!shared_) return;
    if (!shared_->has_ended) {
        shared_->work = nullptr;
        shared_->next.release();
    }
    shared_->may_end.release();
    (void)shared_->wait_for(shared_->ended);
    // It may be in its package's code for a moment: for longer if that has thread-local objects to destroy.
    for (int looks = 0; !shared_->is_gone && (shared_->thread == 0 || is_alive(shared_->thread)); ++looks)
        if (looks < kLooksAtOnce)
            sched_yield();
        else
            std::this_thread::sleep_for(kOwnLook);
}

Status in_own_thread(const std::string& package, const char* what, const std::function<void()>& work) {
    Result<std::unique_ptr<OwnThread>> thread = OwnThread::start();
    if (!thread)
        return fail(ErrorCode::overloaded, "there is no thread for a {} of package {} now ({}); call it later", what,
                    package, thread.error().message());
    return (*thread)->run(package, what, work);
}

}  // namespace rove::code
