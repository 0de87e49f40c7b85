#include "code/jit/guard.hpp"

#include <llvm/Support/ErrorHandling.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/float_environment.hpp"
#include "base/made_once.hpp"

namespace rove::code::jit {
namespace {

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

Status run_in_thread(const std::string& what, const std::function<void()>& work) {
    set_llvm_handlers();
    if (given_up.load() >= kGivenUpMax)
        return fail(ErrorCode::unsupported,
                    "{} is not compiled: LLVM has given up {} times in this process, the most there may; images still "
                    "run; start the process again to compile bitcode",
                    what, kGivenUpMax);
    const auto attempt = std::make_shared<Attempt>();
    std::thread thread;
    try {
        thread = start_thread([attempt, &work] {
            attempt_here = attempt.get();
            std::exception_ptr thrown;
            try {
                work();
            } catch (...) {
                thrown = std::current_exception();
            }
            const std::lock_guard lock(attempt->mutex);
            attempt->ended = true;
            attempt->thrown = thrown;
            attempt->changed.notify_all();
        });
    } catch (const std::exception& error) {  // no thread, or no memory for one
        return fail(
            ErrorCode::overloaded,
            "{} is not compiled: this machine has no thread for LLVM now ({}); try it again later, or allow more "
            "threads",
            what, error.what());
    }
    std::unique_lock lock(attempt->mutex);
    attempt->changed.wait(lock, [&] { return attempt->ended || attempt->why_given_up; });
    lock.unlock();
    if (!attempt->why_given_up) {
        thread.join();
        if (attempt->thrown) std::rethrow_exception(attempt->thrown);
        return {};
    }
    thread.detach();
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
