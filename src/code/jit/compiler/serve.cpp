#include "code/jit/compiler/serve.hpp"

#include <fcntl.h>
#include <llvm/Support/ErrorHandling.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <new>
#include <optional>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "code/jit/compiler/messages.hpp"
#include "code/jit/compiler/warm.hpp"
#include "code/jit/compiler/watch.hpp"

namespace rove::code::jit {
namespace {

// LLVM goes down types, constants and expressions by recursion: nesting.hpp says how far. Of these addresses it touches what it needs.
constexpr std::size_t kStackBytes = 64UL << 20;
// Of a handler: the registers that the kernel saves take 11 KiB where there is AMX.
constexpr std::size_t kFaultStackBytes = 64UL << 10;
constexpr std::size_t kWordsMax = 300;  // of what LLVM says: it may print a whole graph of instructions
constexpr auto kLookEvery = std::chrono::milliseconds(10);
// By which the process may have grown after an answer, to go on.
constexpr std::size_t kGrownMax = 256UL << 20;

// The other end.
int asker = -1;

// Two threads may give up at once, the one that works and the one that watches it. The first says why.
[[noreturn]] void give_up(std::string_view words) {
    static constinit std::atomic<bool> has_given_up{false};
    while (has_given_up.exchange(true)) pause();  // the other one ends the process
    send_gave_up(asker, words);
    _exit(1);
}

void on_error(void* /*data*/, const char* words, bool /*for a crash report*/) {
    std::string_view said(words);
    said = said.substr(0, std::min({said.size(), kWordsMax, said.find('\n')}));
    give_up(said);
}

void on_no_memory() {
    give_up("no memory is left");
}

struct Fault {
    int number;
    std::string_view words;
};
constexpr std::array<Fault, 6> kFaults{{{SIGSEGV, "it crashed (SIGSEGV)"},
                                        {SIGBUS, "it crashed (SIGBUS)"},
                                        {SIGILL, "it crashed (SIGILL)"},
                                        {SIGTRAP, "it crashed (SIGTRAP)"},
                                        {SIGFPE, "it crashed (SIGFPE)"},
                                        {SIGABRT, "it crashed (SIGABRT)"}}};

void on_fault(int number) {
    give_up(std::find_if(kFaults.begin(), kFaults.end(), [number](const Fault& each) {
                return each.number == number;
            })->words);
}

void take_faults() {
    struct sigaction action{};
    action.sa_handler = &on_fault;
    action.sa_flags = SA_ONSTACK;
    sigfillset(&action.sa_mask);
    for (const Fault& each : kFaults) (void)sigaction(each.number, &action, nullptr);
    llvm::remove_fatal_error_handler();
    llvm::install_fatal_error_handler(&on_error);
    llvm::remove_bad_alloc_error_handler();
    llvm::install_bad_alloc_error_handler(&on_error);
    std::set_new_handler(&on_no_memory);
}

// What is compiled now, told by the thread that works to the one that watches it.
class Turn {
public:
    void begin(const Bounds& bounds) {
        const MutexLock lock(mutex_);
        bounds_ = bounds;
        changed_.notify_all();
    }
    // Before the answer: nobody gives up afterwards. Does not return where the watcher has just found it beyond its bounds.
    void end() {
        const MutexLock lock(mutex_);
        bounds_.reset();
        changed_.notify_all();
    }
    // Until the process ends.
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

// If memory runs out on this machine, this process is to end, and no other.
void be_the_first_to_end() {
    const Descriptor file(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
    if (file.is_open()) (void)!write(file.number(), "1000", 4);
}

// The thread that works.
void* work(void* data) {
    Turn& turn = *static_cast<Turn*>(data);
    alignas(std::max_align_t) static std::array<std::byte, kFaultStackBytes>
        fault_stack;  // its own may be what has run out
    const stack_t stack{.ss_sp = fault_stack.data(), .ss_flags = 0, .ss_size = kFaultStackBytes};
    (void)sigaltstack(&stack, nullptr);
    const ByteBuffer small = warm_module();  // so that the first question finds LLVM's code in memory
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
    Turn turn;  // it lives as long as the process: watch() does not return
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_t working{};
    if (pthread_create(&working, &attributes, &work, &turn) != 0) _exit(1);
    turn.watch(working);
}

}  // namespace rove::code::jit
