#include "toolchain/process.hpp"

#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>

#include "toolchain/files.hpp"

namespace rove::toolchain {

namespace {

constexpr std::array kEnds{SIGINT, SIGTERM, SIGHUP};
constexpr auto kWayOut = std::chrono::seconds(1);
std::atomic<int> came{0};  // the signal that arrived while an Interruptible exists; 0: none
sem_t something_came;      // posted for such a signal, and at the Interruptible's end
// The process group of the program that run() runs; no other process has this number while its Process exists.
std::atomic<pid_t> running{0};

void end_what_runs() {
    if (const pid_t child = running.load(); child != 0) (void)kill(-child, SIGTERM);
}

void note(int number) {
    const int before = errno;
    came = number;
    end_what_runs();
    (void)sem_post(&something_came);
    errno = before;
}

}  // namespace

Interruptible::Interruptible() {
    (void)sem_init(&something_came, 0, 0);
    ends_at_last_ = std::thread([this] { end_at_last(); });
    struct sigaction action{};
    action.sa_handler = &note;
    for (std::size_t i = 0; i < kEnds.size(); ++i) {
        (void)sigaction(kEnds[i], nullptr, &before_[i]);
        if (before_[i].sa_handler != SIG_IGN) (void)sigaction(kEnds[i], &action, nullptr);
    }
}

void Interruptible::end_at_last() {
    while (sem_wait(&something_came) != 0) continue;
    if (is_over_.try_acquire_for(kWayOut)) return;
    TemporaryFolder::remove_all();
    const int number = came;
    (void)signal(number, SIG_DFL);
    (void)kill(getpid(), number);
}

Interruptible::~Interruptible() {
    is_over_.release();
    (void)sem_post(&something_came);
    ends_at_last_.join();
    for (std::size_t i = 0; i < kEnds.size(); ++i) (void)sigaction(kEnds[i], &before_[i], nullptr);
    if (const int number = came.exchange(0); number != 0) (void)raise(number);
}

Status not_interrupted() {
    if (came != 0) return fail(ErrorCode::cancelled, "ended: a signal came");
    return {};
}

Result<Ran> run(const std::vector<std::string>& command, const std::string& debian_package,
                const std::vector<std::string>& environment) {
    const std::string& program = command.front();
    if (came != 0) return fail(ErrorCode::cancelled, "{} was not run: a signal came", program);
    Result<Process> process = Process::start(command, {.err = ProcessOptions::kAsOutput, .environment = environment});
    if (!process && process.error().code() == ErrorCode::unsupported)
        return fail(ErrorCode::unsupported, "{} is not installed; install the Debian package {} (apt-get install {})",
                    program, debian_package, debian_package);
    if (!process) return tl::unexpected<Error>(process.error());
    running = process->pid();
    if (came != 0) end_what_runs();  // a signal arrived before `running` was set
    Ran ran = process->communicate({}, kOutputBytesMax);
    running = 0;
    if (came != 0) return fail(ErrorCode::cancelled, "{} was ended: a signal came", program);
    return ran;
}

}  // namespace rove::toolchain
