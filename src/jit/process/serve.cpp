#include "jit/process/serve.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <new>
#include <optional>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "bitcode/faults.hpp"
#include "jit/process/messages.hpp"
#include "jit/process/warm.hpp"
#include "jit/process/watch.hpp"

namespace rove::bitcode {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(10);
// The growth of the process after an answer beyond which it ends.
constexpr std::size_t kGrownMax = 256UL << 20;

// The descriptor to the other end.
int asker = -1;

// Two threads may give up at the same time, the one that works and the one that watches it. The first one reports.
[[noreturn]] void give_up(std::string_view words) {
    static constinit std::atomic<bool> has_given_up{false};
    while (has_given_up.exchange(true)) pause();  // the other one ends the process
    send_gave_up(asker, words);
    _exit(1);
}

void on_error(void* /*data*/, const char* words, bool /*for a crash report*/) {
    give_up(OneLine(words).c_str());
}

void on_no_memory() {
    give_up("no memory is left");
}

void on_fault(int number) {
    give_up(kFaults[place_of_fault(number)].words);
}

void take_faults() {
    struct sigaction action{};
    action.sa_handler = &on_fault;
    action.sa_flags = SA_ONSTACK;
    sigfillset(&action.sa_mask);
    for (const Fault& each : kFaults) (void)sigaction(each.number, &action, nullptr);
    set_llvm_handlers(&on_error);
    std::set_new_handler(&on_no_memory);
}

// The piece that is compiled now; set by the thread that compiles, read by the thread that watches it.
class Turn {
public:
    void begin(const Bounds& bounds) {
        const MutexLock lock(mutex_);
        bounds_ = bounds;
        changed_.notify_all();
    }
    // Called before the answer: afterwards the watcher does not give up. Does not return if the watcher has just found the bounds exceeded.
    void end() {
        const MutexLock lock(mutex_);
        bounds_.reset();
        changed_.notify_all();
    }
    // Runs until the process ends.
    [[noreturn]] void watch(pthread_t working) {
        const MutexLock lock(mutex_);
        for (;;) {
            while (!bounds_) changed_.wait(mutex_);
            Watch watch(*bounds_, working);
            while (bounds_) {
                (void)changed_.wait_for(mutex_, kLookEvery);
                if (!bounds_) break;
                pollfd asks{asker, POLLRDHUP, 0};
                if (poll(&asks, 1, 0) > 0 && (asks.revents & (POLLRDHUP | POLLHUP)) != 0) _exit(0);
                if (const auto words = watch.look()) give_up(*words);
            }
        }
    }

private:
    Mutex mutex_;
    std::condition_variable_any changed_;
    std::optional<Bounds> bounds_ GUARDED_BY(mutex_);
};

// If memory runs out on this machine, this process is to be ended, and no other.
void be_the_first_to_end() {
    const Descriptor file(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
    if (file.is_open()) (void)!write(file.number(), "1000", 4);
}

FaultStack fault_stack;  // the working thread's

void* work(void* data) {
    Turn& turn = *static_cast<Turn*>(data);
    fault_stack.take();
    const ByteBuffer small = warm_module();  // so that LLVM's code is in memory at the first question
    (void)generate({.name = kWarmFunction, .bitcode = small, .in_image = {}});
    const std::size_t before = memory_of_process();
    while (auto bytes = receive_message(asker, kQuestionBytesMax)) {
        auto question = decode_question(std::move(*bytes));
        if (question) turn.begin(question->bounds);
        const ByteBuffer answer =
            encode_answer(question ? generate(question->request) : tl::unexpected<Error>(std::move(question.error())));
        turn.end();
        if (!send_message(asker, answer) || memory_of_process() > before + kGrownMax) break;
    }
    _exit(0);
}

}  // namespace

void serve(int socket) {
    asker = socket;
    const rlimit no_dumps{0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_dumps);
    be_the_first_to_end();
    take_faults();
    Turn turn;  // lives as long as the process: watch() does not return
    pthread_t working{};
    if (begin_thread(working, &work, &turn) != 0) _exit(1);
    turn.watch(working);
}

}  // namespace rove::bitcode
