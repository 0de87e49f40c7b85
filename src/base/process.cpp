#include "base/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/descriptor_limit.hpp"

namespace rove {
namespace {

// How often it is checked whether a program has ended whose outputs other processes keep open.
constexpr std::chrono::milliseconds kLook{20};
constexpr int kCannotBegin = 127;  // the value that shells use

struct Pipe {
    Descriptor read, write;
};

Result<Pipe> make_pipe(const std::string& program) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
        return fail(ErrorCode::overloaded, "no pipe for {} ({})", program, strerror(errno));
    return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// The steps of the fork's child until it executes the program. All memory that they use is prepared before the fork, because another thread may
// have held the allocator's lock then.
struct Beginning {
    char* const* arguments;
    char* const* environment;
    std::vector<std::pair<int, int>> descriptors;  // number here, number there
    const cpu_set_t* cores;                        // null: unchanged
    pid_t parent;
    sigset_t signals;  // signals that are to be blocked
    int tells;         // where it writes the reason if it cannot execute the program

    [[noreturn]] void begin() {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(kCannotBegin);  // the parent ended before that
        (void)setpgid(0, 0);
        if (cores != nullptr) (void)sched_setaffinity(0, sizeof *cores, cores);
        if (take_descriptors() && reset_signals()) {
            restore_descriptor_limit();
            (void)execvpe(arguments[0], arguments, environment);
        }
        const int error = errno;
        (void)!write(tells, &error, sizeof error);
        _exit(kCannotBegin);
    }

private:
    bool take_descriptors() {
        int last = STDERR_FILENO;
        for (const auto& [here, there] : descriptors) last = std::max(last, there);
        // Moves descriptors away from the numbers that are to be used, `last` + 1 included.
        for (auto& [here, there] : descriptors) {
            here = fcntl(here, F_DUPFD_CLOEXEC, last + 2);
            if (here < 0) return false;
        }
        const int told = fcntl(tells, F_DUPFD_CLOEXEC, last + 2);
        if (told < 0 || dup3(told, last + 1, O_CLOEXEC) < 0) return false;
        tells = last + 1;
        for (const auto& [here, there] : descriptors)
            if (dup2(here, there) < 0) return false;
        for (int number = 0; number <= last; ++number)
            if (std::none_of(descriptors.begin(), descriptors.end(),
                             [number](const auto& each) { return each.second == number; }))
                ::close(number);
        closefrom(last + 2);
        return true;
    }

    // The handlers are this process's; until they are reset no signal may be delivered. Ignored signals stay ignored.
    [[nodiscard]] bool reset_signals() const {
        for (int number = 1; number < NSIG; ++number) {
            struct sigaction action{};
            if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
            action = {};
            action.sa_handler = SIG_DFL;
            (void)sigaction(number, &action, nullptr);
        }
        return pthread_sigmask(SIG_SETMASK, &signals, nullptr) == 0;
    }
};

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

std::vector<std::string> environment_with(const std::vector<std::string>& more) {
    std::vector<std::string> all = more;
    const auto is_among_them = [&more](std::string_view variable) {
        const std::string_view name = variable.substr(0, variable.find('=') + 1);
        return std::any_of(more.begin(), more.end(),
                           [name](const std::string& each) { return each.starts_with(name); });
    };
    for (char** each = environ; *each != nullptr; ++each)
        if (!is_among_them(*each)) all.emplace_back(*each);
    return all;
}

cpu_set_t set_of(const std::vector<int>& cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores) CPU_SET(core, &set);
    return set;
}

// Forks with all signals blocked: a signal that arrives before the child has reset its handlers waits until then.
pid_t fork_into(Beginning& beginning) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &beginning.signals);
    beginning.parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) beginning.begin();
    const int error = errno;
    pthread_sigmask(SIG_SETMASK, &beginning.signals, nullptr);
    errno = error;
    return pid;
}

void reap(pid_t pid) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
}

// Why the program was not begun; 0: it was.
int told_by(const Descriptor& from) {
    int error = 0;
    ssize_t got = 0;
    while ((got = read(from.number(), &error, sizeof error)) < 0 && errno == EINTR) continue;
    return got == sizeof error ? error : 0;
}

int milliseconds_to(const Deadline& until) {
    if (!until) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

// Reads at most that many of the available bytes. False: no more will follow.
bool read_some(const Descriptor& from, std::string& into, std::size_t bytes_max) {
    std::array<char, 16384> piece;
    const ssize_t got = read(from.number(), piece.data(), piece.size());
    if (got <= 0) return got < 0 && (errno == EINTR || errno == EAGAIN);
    into.append(piece.data(), std::min(static_cast<std::size_t>(got), bytes_max - std::min(bytes_max, into.size())));
    return true;
}

}  // namespace

Result<Process> Process::start(const std::vector<std::string>& command, const ProcessOptions& options) {
    const std::string& program = command.front();
    Process process;
    process.grace_ = options.grace;
    process.parent_ = getpid();
    const std::vector<std::string> variables = environment_with(options.environment);
    const std::vector<char*> arguments = pointers_to(command), environment = pointers_to(variables);
    const cpu_set_t cores = set_of(options.cores);
    ROVE_TRY(Pipe tells, make_pipe(program));
    Beginning beginning{.arguments = arguments.data(),
                        .environment = environment.data(),
                        .descriptors = options.descriptors,
                        .cores = options.cores.empty() ? nullptr : &cores,
                        .parent = 0,
                        .signals = {},
                        .tells = tells.write.number()};
    const Descriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
    std::array<Descriptor, 3> theirs;
    const std::array<int, 3> given{options.in, options.out,
                                   options.err == ProcessOptions::kAsOutput ? options.out : options.err};
    const std::array<Descriptor*, 3> ours{&process.in_, &process.out_, &process.err_};
    for (int number = 0; number < 3; ++number) {
        const auto i = static_cast<std::size_t>(number);
        int here = given[i] == ProcessOptions::kNothing ? nothing.number() : given[i];
        if (number == STDERR_FILENO && options.err == ProcessOptions::kAsOutput) {
            here = beginning.descriptors.back().first;
        } else if (given[i] == ProcessOptions::kPipe) {
            ROVE_TRY(Pipe pipe, make_pipe(program));
            theirs[i] = std::move(number == STDIN_FILENO ? pipe.read : pipe.write);
            *ours[i] = std::move(number == STDIN_FILENO ? pipe.write : pipe.read);
            here = theirs[i].number();
        }
        beginning.descriptors.emplace_back(here, number);
    }
    process.pid_ = fork_into(beginning);
    if (process.pid_ < 0) return fail(ErrorCode::overloaded, "no process for {} ({})", program, strerror(errno));
    tells.write.close();
    if (const int error = told_by(tells.read); error != 0) {
        reap(std::exchange(process.pid_, -1));
        return fail(error == ENOENT ? ErrorCode::unsupported : ErrorCode::failed, "{} cannot be started ({})", program,
                    strerror(error));
    }
    return process;
}

Process::~Process() {
    if (pid_ <= 0 || parent_ != getpid()) return;
    in_.close();
    if (grace_.count() > 0 && !ended()) {
        signal(SIGTERM);
        (void)wait(Clock::now() + grace_);
    }
    (void)kill();
    reap(pid_);
}

void Process::swap(Process& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(parent_, other.parent_);
    std::swap(status_, other.status_);
    std::swap(in_, other.in_);
    std::swap(out_, other.out_);
    std::swap(err_, other.err_);
    std::swap(grace_, other.grace_);
}

// The destructor reaps the program: until then no other process can get its number or its group's.
std::optional<int> Process::wait(Deadline until) {
    while (runs()) {
        siginfo_t end{};
        const int way = until ? WNOHANG : 0;
        if (waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOWAIT | way) != 0) {
            if (errno != EINTR) status_ = 128 + SIGKILL;  // another part of this process has reaped it
        } else if (end.si_pid == pid_) {
            status_ = end.si_code == CLD_EXITED ? end.si_status : 128 + end.si_status;
        } else {
            if (Clock::now() >= *until) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    return status_;
}

void Process::signal(int number) const {
    if (runs()) ::kill(pid_, number);
}

int Process::kill() {
    if (pid_ > 0) ::kill(-pid_, SIGKILL);
    return wait().value_or(0);
}

std::string Process::read_line(Deadline until) {
    std::string line;
    pollfd ready{out_.number(), POLLIN, 0};
    while (out_.is_open() && poll(&ready, 1, milliseconds_to(until)) != 0) {
        char next = 0;
        const ssize_t got = read(out_.number(), &next, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got != 1 || next == '\n') break;
        line += next;
    }
    return line;
}

Ran Process::communicate(Deadline until, std::size_t bytes_max) {
    Ran ran;
    in_.close();
    for (bool reads = true; reads;) {
        std::array<pollfd, 2> ready{{{out_.number(), POLLIN, 0}, {err_.number(), POLLIN, 0}}};
        const bool is_late = until && Clock::now() >= *until;
        if (is_late) (void)kill();
        // After the program's end all output is in the pipes: a poll that finds nothing is the last one.
        const bool is_last = ended().has_value();
        const int look = static_cast<int>(kLook.count()), left = milliseconds_to(until);
        const int count = poll(ready.data(), ready.size(), is_last ? 0 : left < 0 ? look : std::min(look, left));
        if (ready[0].revents != 0 && !read_some(out_, ran.out, bytes_max)) out_.close();
        if (ready[1].revents != 0 && !read_some(err_, ran.err, bytes_max)) err_.close();
        reads = (out_.is_open() || err_.is_open()) && !(is_last && count == 0);
    }
    const std::optional<int> status = wait(until);
    ran.status = status ? *status : kill();
    return ran;
}

Result<Descriptor> open_for_output(const std::filesystem::path& path, bool append) {
    Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0600));
    if (!file.is_open()) return fail(ErrorCode::failed, "{} cannot be opened ({})", path.string(), strerror(errno));
    return file;
}

}  // namespace rove
