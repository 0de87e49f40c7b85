#include "code/jit/guard.hpp"

#include <llvm/Support/ErrorHandling.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <system_error>

#include "base/float_environment.hpp"
#include "base/made_once.hpp"

namespace rove::code::jit {
namespace {

// LLVM goes down types, constants and expressions by recursion: nesting.hpp says how far. Of these addresses it touches what it needs.
constexpr std::size_t kStackBytes = 64UL << 20;

constexpr std::size_t kWordsMax = 300;  // of what LLVM says: it may print a whole graph of instructions

std::atomic<int> given_up{0};

// One piece of work. Shared, because a thread that stays in the handler may still let go of the mutex when the waiting one has gone on.
struct Attempt {
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false;
    std::optional<std::string> why_given_up;
    std::exception_ptr thrown;
};

thread_local Attempt* attempt_here = nullptr;

// Held by who waits for the work and not by the thread that does it, which may stay in the handler for ever.
std::shared_mutex& running() {
    static constinit MadeInEachProcess<std::shared_mutex> mutex;
    return mutex.get([] { return new std::shared_mutex; });
}

// LLVM's words as one line.
std::string one_line(const char* words) {
    std::string line(std::string_view(words).substr(0, kWordsMax));
    while (!line.empty() && line.back() == '\n') line.pop_back();
    std::replace(line.begin(), line.end(), '\n', ' ');
    return line;
}

void handle(void* /*data*/, const char* words, bool /*for a crash report*/) {
    if (attempt_here == nullptr) {
        // A thread of the program's own LLVM: what happens without a handler. LLVM ends the process next.
        std::fprintf(stderr, "LLVM ERROR: %s\n", words);
        return;
    }
    {
        const std::lock_guard lock(attempt_here->mutex);
        attempt_here->why_given_up = one_line(words);
        attempt_here->changed.notify_all();
    }
    for (;;) pause();
}

}  // namespace

void set_llvm_handlers() {
    static constinit MadeOnce<const bool> done;
    (void)done.get([] {
        llvm::remove_fatal_error_handler();
        llvm::install_fatal_error_handler(&handle);
        llvm::remove_bad_alloc_error_handler();
        llvm::install_bad_alloc_error_handler(&handle);
        return new const bool(true);
    });
}

namespace {

// Where a thread begins: it does the work, and says that it has ended.
struct Begun {
    std::shared_ptr<Attempt> attempt;
    const std::function<void()>& work;
};

void* run_attempt(void* data) {
    const std::unique_ptr<Begun> begun(static_cast<Begun*>(data));
    arch::FloatControls::set_standard();
    attempt_here = begun->attempt.get();
    std::exception_ptr thrown;
    try {
        begun->work();
    } catch (...) {
        thrown = std::current_exception();
    }
    const std::lock_guard lock(begun->attempt->mutex);
    begun->attempt->ended = true;
    begun->attempt->thrown = thrown;
    begun->attempt->changed.notify_all();
    return nullptr;
}

// 0, or why there is none.
int begin_thread(pthread_t& thread, std::unique_ptr<Begun> begun) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    const int error = pthread_create(&thread, &attributes, &run_attempt, begun.get());
    pthread_attr_destroy(&attributes);
    if (error == 0) (void)begun.release();  // the thread's
    return error;
}

Status run_in_thread(const std::string& what, const std::function<void()>& work) {
    set_llvm_handlers();
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
        error = begin_thread(thread, std::make_unique<Begun>(attempt, work));
    } catch (const std::bad_alloc&) {
    }
    if (error != 0)
        return fail(
            ErrorCode::overloaded,
            "{} is not compiled: this machine has no thread for LLVM now ({}); try it again later, or allow more "
            "threads",
            what, std::generic_category().message(error));
    std::unique_lock lock(attempt->mutex);
    attempt->changed.wait(lock, [&] { return attempt->ended || attempt->why_given_up; });
    lock.unlock();
    if (!attempt->why_given_up) {
        pthread_join(thread, nullptr);
        if (attempt->thrown) std::rethrow_exception(attempt->thrown);
        return {};
    }
    pthread_detach(thread);
    ++given_up;
    return fail(ErrorCode::failed, "{} does not compile: LLVM gave up: {}", what, *attempt->why_given_up);
}

}  // namespace

Status run_guarded(const std::string& what, const std::function<void()>& work) {
    const std::shared_lock lock(running());
    return run_in_thread(what, work);
}

Status run_guarded_alone(const std::string& what, const std::function<void()>& work) {
    const std::unique_lock lock(running());
    return run_in_thread(what, work);
}

}  // namespace rove::code::jit
