#include "bitcode/guard.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <system_error>

#include "base/float_environment.hpp"
#include "base/made_once.hpp"
#include "base/mutex.hpp"
#include "bitcode/faults.hpp"

namespace rove::bitcode {
namespace {

std::atomic<int> given_up{0};

// One piece of work. Shared, because the thread that stays in the handler may still be releasing the mutex when the waiting one has continued.
struct Attempt {
    Mutex mutex;
    std::condition_variable_any changed;
    bool ended GUARDED_BY(mutex) = false;
    std::exception_ptr thrown GUARDED_BY(mutex);
    std::atomic<const char*> why_given_up{nullptr};
    OneLine words;  // LLVM's message, if it gives one; written before that
    FaultStack fault_stack;
};

// Initial-exec: a signal handler reads it, and must not allocate a thread's memory for it.
constinit thread_local Attempt* attempt_here [[gnu::tls_model("initial-exec")]] = nullptr;

// Held by the thread that waits for the work, and not by the one that does it, because the latter may stay in the handler for ever.
SharedMutex& running() {
    static constinit MadeInEachProcess<SharedMutex> mutex;
    return mutex.get([] { return new SharedMutex; });
}

// The thread that does the work stays here for ever; the thread that waits for it continues. `why` outlives this.
[[noreturn]] void give_up(Attempt& attempt, const char* why) {
    attempt.why_given_up.store(why, std::memory_order_release);  // partner: run_in_thread
    {
        const MutexLock lock(attempt.mutex);
        attempt.changed.notify_all();
    }
    for (;;) pause();
}

void handle(void* /*data*/, const char* words, bool /*for a crash report*/) {
    if (attempt_here == nullptr) {
        // A thread of the program's own LLVM: as without a handler. LLVM ends the process next.
        std::fprintf(stderr, "LLVM ERROR: %s\n", words);
        return;
    }
    attempt_here->words = OneLine(words);
    give_up(*attempt_here, attempt_here->words.c_str());
}

// The handler of faults that the process had before on_fault().
struct Former {
    struct sigaction handler{};
    // The program has set a handler while on_fault() was set. That handler may call the one that it replaced, so it is not replaced from
    // then on: as `handler` it would be called by the one that it calls.
    bool is_the_programs = false;
};
constinit std::array<Former, kFaults.size()> former{};

// Raises the signal again with that handler, once the running one has returned. An instruction that faulted is executed again and faults
// again; a signal that was sent, or a trap, which is not executed again, is sent once more.
void meet_again(int number, const siginfo_t& info, const struct sigaction& handler) {
    (void)sigaction(number, &handler, nullptr);
    if (info.si_code <= 0 || number == SIGTRAP) (void)raise(number);
}

// Runs in the thread that faults. A thread that does work is in LLVM's code, which holds none of the process's locks: only if it faults within
// malloc(), after it has corrupted the heap, do other threads wait for ever. Faults of all other threads are handled as before.
void on_fault(int number, siginfo_t* info, void* context) {
    const std::size_t place = place_of_fault(number);
    const bool is_own = info->si_code > 0 || (number == SIGABRT && info->si_pid == getpid());  // abort() sends it
    if (attempt_here != nullptr && is_own) give_up(*attempt_here, kFaults[place].words);
    const struct sigaction& before = former[place].handler;
    if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(number, info, context);
    if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(number);
    meet_again(number, *info, before);
}

// While one exists, on_fault() handles faults. The process has its own handlers again when no work runs.
class FaultsTaken {
public:
    FaultsTaken() {
        Works& all = works();
        const MutexLock lock(all.mutex);
        if (all.running++ > 0) return;
        for (std::size_t i = 0; i < kFaults.size(); ++i) {
            if (former[i].is_the_programs) continue;
            struct sigaction mine{};
            mine.sa_sigaction = &on_fault;
            mine.sa_flags = SA_SIGINFO | SA_ONSTACK;
            sigemptyset(&mine.sa_mask);
            struct sigaction before{};  // in the child of a fork during work, on_fault() is set already
            if (sigaction(kFaults[i].number, &mine, &before) == 0 && before.sa_sigaction != &on_fault)
                former[i].handler = before;
        }
    }
    ~FaultsTaken() {
        Works& all = works();
        const MutexLock lock(all.mutex);
        if (--all.running > 0) return;
        for (std::size_t i = 0; i < kFaults.size(); ++i) {
            struct sigaction now{};
            if (former[i].is_the_programs || sigaction(kFaults[i].number, nullptr, &now) != 0) continue;
            if (now.sa_sigaction == &on_fault)
                (void)sigaction(kFaults[i].number, &former[i].handler, nullptr);
            else
                former[i].is_the_programs = true;
        }
    }
    // False: the program has set its own handler for it since.
    [[nodiscard]] static bool has(int number) {
        struct sigaction now{};
        return sigaction(number, nullptr, &now) == 0 && now.sa_sigaction == &on_fault;
    }
    FaultsTaken(const FaultsTaken&) = delete;
    FaultsTaken& operator=(const FaultsTaken&) = delete;

private:
    struct Works {
        Mutex mutex;
        unsigned running GUARDED_BY(mutex) = 0;
    };
    static Works& works() {
        static constinit MadeInEachProcess<Works> made;
        return made.get([] { return new Works; });
    }
};

}  // namespace

void set_llvm_handlers() {
    static constinit MadeOnce<const bool> done;
    (void)done.get([] {
        set_llvm_handlers(&handle);
        return new const bool(true);
    });
}

namespace {

// The body of a thread: does the work, and reports its end.
struct Begun {
    std::shared_ptr<Attempt> attempt;
    const std::function<void()>& work;
};

void* run_attempt(void* data) {
    const std::unique_ptr<Begun> begun(static_cast<Begun*>(data));
    arch::FloatControls::set_standard();
    attempt_here = begun->attempt.get();
    attempt_here->fault_stack.take();
    std::exception_ptr thrown;
    try {
        begun->work();
    } catch (...) {
        thrown = std::current_exception();
    }
    FaultStack::give_back();
    const MutexLock lock(begun->attempt->mutex);
    begun->attempt->ended = true;
    begun->attempt->thrown = thrown;
    begun->attempt->changed.notify_all();
    return nullptr;
}

Status run_in_thread(const std::string& what, const std::function<void()>& work) {
    set_llvm_handlers();
    const FaultsTaken faults_taken;
    if (given_up.load() >= kGivenUpMax)
        return fail(ErrorCode::unsupported,
                    "{} is not compiled: LLVM has given up {} times in this process, the most there may; images still "
                    "run; start the process again to compile bitcode",
                    what, kGivenUpMax);
    std::shared_ptr<Attempt> attempt;
    pthread_t thread{};
    int error = ENOMEM;
    try {
        attempt = std::make_shared<Attempt>();
        auto begun = std::make_unique<Begun>(attempt, work);
        error = begin_thread(thread, &run_attempt, begun.get());
        if (error == 0) (void)begun.release();  // now the thread's
    } catch (const std::bad_alloc&) {           // `error` reports it
    }
    if (error != 0)
        return fail(
            ErrorCode::overloaded,
            "{} is not compiled: this machine has no thread for LLVM now ({}); try it again later, or allow more "
            "threads",
            what, std::generic_category().message(error));
    {
        const MutexLock lock(attempt->mutex);
        while (!attempt->ended && attempt->why_given_up == nullptr) attempt->changed.wait(attempt->mutex);
    }
    const char* const why = attempt->why_given_up.load(std::memory_order_acquire);
    if (why == nullptr) {
        pthread_join(thread, nullptr);
        const MutexLock lock(attempt->mutex);
        if (attempt->thrown) std::rethrow_exception(attempt->thrown);
        return {};
    }
    pthread_detach(thread);
    ++given_up;
    return fail(ErrorCode::failed, "{} does not compile: LLVM gave up: {}", what, why);
}

}  // namespace

Status run_guarded(const std::string& what, const std::function<void()>& work) {
    const SharedLock lock(running());
    return run_in_thread(what, work);
}

Status run_guarded_alone(const std::string& what, const std::function<void()>& work) {
    const SoleLock lock(running());
    return run_in_thread(what, work);
}

}  // namespace rove::bitcode
