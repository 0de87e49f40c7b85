#include "jit/process/process.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "base/fork.hpp"
#include "base/fork_descriptors.hpp"
#include "base/made_once.hpp"
#include "jit/process/messages.hpp"
#include "jit/process/watch.hpp"

namespace rove::bitcode {
namespace {

using namespace std::chrono_literals;

constexpr const char* kProgram = "rove/rove-compiler";  // beside librove-jit.so
// The longest time without use of a processor; the process checks its own work a hundred times a second.
constexpr auto kStandstillMax = std::chrono::seconds(5);
constexpr auto kLookEvery = std::chrono::milliseconds(100);

tl::unexpected<Error> no_room(std::string_view what, int error) {
    return fail(ErrorCode::overloaded,
                "bitcode is not compiled: this process has no {} for that now ({}); try it again later, or allow more",
                what, std::generic_category().message(error));
}

std::string own_file() {
    Dl_info self{};
    if (dladdr(reinterpret_cast<const void*>(&own_file), &self) == 0 || self.dli_fname == nullptr) return {};
    std::error_code ignored;
    return std::filesystem::weakly_canonical(self.dli_fname, ignored).string();
}

// A stack for system calls only.
using Stack = std::array<std::max_align_t, 1024>;

}  // namespace

// clone() of the C library itself: ThreadSanitizer's treats the new task as a separate process.
using Clone = int (*)(int (*)(void*), void*, int, void*, ...);
static Clone own_clone() {
    void* const library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void* const found = library != nullptr ? dlsym(library, "clone") : nullptr;
    return found != nullptr ? reinterpret_cast<Clone>(found) : &clone;
}

// What the new process needs to start. Its parent, the process in between, runs on the first of the stacks.
struct Beginning {
    const char* program = nullptr;
    std::array<char*, 3> arguments{};
    int socket = -1, nothing = -1;
    const Clone clone = own_clone();
    Stack between, own;
    pid_t pid = -1, parent = -1;
    int error = 0;                // why it could not start
    std::uint32_t has_begun = 0;  // or `error` says why not; a futex
};

namespace {

// These share the memory of this process, and the thread-local memory of the thread that starts them: so they make only system calls, which
// no sanitizer checks, and which set errno only if they fail. All signals are blocked.
[[clang::disable_sanitizer_instrumentation]] int begin_program(void* data) {
    auto& beginning = *static_cast<Beginning*>(data);
    // Moves these away from the first four numbers.
    const auto socket = syscall(SYS_fcntl, beginning.socket, F_DUPFD, 4);
    const auto nothing = syscall(SYS_fcntl, beginning.nothing, F_DUPFD, 4);
    bool done = socket >= 0 && nothing >= 0;
    for (int number = 0; done && number < 3; ++number) done = syscall(SYS_dup3, nothing, number, 0) >= 0;
    done = done && syscall(SYS_dup3, socket, 3, 0) >= 0 && syscall(SYS_close_range, 4U, ~0U, 0) == 0;
    // Ctrl-C in a terminal must not end it. It stays in this session, because Linux shares the processors out between sessions (autogroups):
    // a leader that yields would not yield to it, and would keep it from work for a tenth of its time.
    if (done) (void)syscall(SYS_setpgid, 0, 0);
    if (done) (void)syscall(SYS_chdir, "/");
    if (done) (void)syscall(SYS_execve, beginning.program, beginning.arguments.data(), environ);
    beginning.error = errno;
    syscall(SYS_exit, 1);
    return 1;
}
[[clang::disable_sanitizer_instrumentation]] void begin_own(Beginning& beginning) {
    beginning.pid = beginning.clone(&begin_program, beginning.own.data() + beginning.own.size(), CLONE_VM | CLONE_VFORK,
                                    &beginning);
    if (beginning.pid < 0) beginning.error = errno;
}
[[clang::disable_sanitizer_instrumentation]] int begin_and_leave(void* data) {
    begin_own(*static_cast<Beginning*>(data));
    syscall(SYS_exit, 0);
    return 0;
}
[[clang::disable_sanitizer_instrumentation]] int begin_and_wait(void* data) {
    auto& beginning = *static_cast<Beginning*>(data);
    begin_own(beginning);
    const pid_t pid = beginning.pid;
    __atomic_store_n(&beginning.has_begun, 1, __ATOMIC_RELEASE);
    (void)syscall(SYS_futex, &beginning.has_begun, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    (void)syscall(SYS_close_range, 0U, ~0U, 0);
    while (pid > 0 && syscall(SYS_wait4, pid, nullptr, __WALL, nullptr) < 0 && errno == EINTR) continue;
    syscall(SYS_exit, 0);
    return 0;
}

// Whether an orphan becomes a child of this process: it is the first of its container, or a subreaper.
bool adopts_orphans() {
    int is_asked_for = 0;
    return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &is_asked_for) == 0 && is_asked_for != 0);
}

// fork() is not used, because it takes milliseconds if a process has much memory, and its pages are copied afterwards. The program becomes an
// orphan at once: a program that uses Rove waits for its own children, and gets SIGCHLD for them, and for no other. The process in between
// runs no program, so wait() does not see it either. If this process would adopt the orphan, the process in between stays as its parent.
void begin_elsewhere(Beginning& beginning) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const bool stays = adopts_orphans();
    const pid_t between =
        beginning.clone(stays ? &begin_and_wait : &begin_and_leave, beginning.between.data() + beginning.between.size(),
                        stays ? CLONE_VM : CLONE_VM | CLONE_VFORK, &beginning);
    if (between < 0)
        beginning.error = errno;
    else if (stays)
        while (__atomic_load_n(&beginning.has_begun, __ATOMIC_ACQUIRE) == 0)
            (void)syscall(SYS_futex, &beginning.has_begun, FUTEX_WAIT, 0, nullptr, nullptr, 0);
    else
        while (waitpid(between, nullptr, __WCLONE) < 0 && errno == EINTR) continue;
    if (stays) beginning.parent = between;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// A descriptor that discards all output. There may be no /dev.
Descriptor open_nothing() {
    Descriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
    return nothing.is_open() ? std::move(nothing) : Descriptor(memfd_create("rove-compiler", MFD_CLOEXEC));
}

}  // namespace

// Its memory is the stack of the process in between, so it is kept until that has ended, which it does soon after its child.
void CompilerProcess::EndParent::operator()(Beginning* beginning) const {
    constexpr auto kLook = std::chrono::milliseconds(1);
    constexpr auto kLong = std::chrono::seconds(1);
    const pid_t parent = beginning->parent;
    for (auto waited = 0ms; parent > 0 && waited < kLong; waited += kLook, std::this_thread::sleep_for(kLook))
        if (const pid_t ended = waitpid(parent, nullptr, __WCLONE | WNOHANG);
            ended > 0 || (ended < 0 && errno != EINTR)) {
            delete beginning;
            return;
        }
    if (parent <= 0) delete beginning;
}

CompilerProcess::CompilerProcess(Descriptor socket, std::unique_ptr<Beginning, EndParent> begun)
    : socket_(std::move(socket)),
      pid_(begun->pid),
      handle_(static_cast<int>(syscall(SYS_pidfd_open, begun->pid, 0))),
      begun_(std::move(begun)) {
    close_in_forks(socket_.number());
    if (has_ended()) handle_.close();  // the number may be another process's
    if (handle_.is_open()) close_in_forks(handle_.number());
    if (begun_->parent <= 0) begun_.reset();
    // Used for an answer that has begun.
    const timeval wait{.tv_sec = kStandstillMax.count(), .tv_usec = 0};
    (void)setsockopt(socket_.number(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
}

Result<CompilerProcess> CompilerProcess::begin() {
    const std::string library = own_file();
    const std::string program = (std::filesystem::path(library).parent_path() / kProgram).string();
    const NoForkMeanwhile whole;  // a copy of the other end would hide that it is closed
    std::array<int, 2> both{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both.data()) != 0) return no_room("socket", errno);
    Descriptor ours(both[0]);
    const Descriptor theirs(both[1]);
    const Descriptor nothing = open_nothing();
    if (!nothing.is_open()) return no_room("descriptor", errno);
    std::unique_ptr<Beginning, EndParent> beginning(new Beginning);
    beginning->program = program.c_str();
    beginning->arguments = {const_cast<char*>(program.c_str()), const_cast<char*>(library.c_str()), nullptr};
    beginning->socket = theirs.number();
    beginning->nothing = nothing.number();
    begin_elsewhere(*beginning);
    const int error = beginning->error;
    if (error == 0) return CompilerProcess(std::move(ours), std::move(beginning));
    if (error == EAGAIN || error == ENOMEM) return no_room("process", error);
    return fail(
        ErrorCode::unsupported,
        "bitcode cannot be compiled here: {} cannot be run ({}); install Rove's librove-jit.so together with it",
        program, std::generic_category().message(error));
}

CompilerProcess::~CompilerProcess() {
    close();
}

void CompilerProcess::close() {
    for (Descriptor* each : {&socket_, &handle_})
        if (each->is_open()) keep_in_forks(each->number());
    socket_.close();  // which ends it, unless it was stopped by a signal
    if (handle_.is_open()) (void)syscall(SYS_pidfd_send_signal, handle_.number(), SIGKILL, nullptr, 0);
    handle_.close();
    begun_.reset();
}

bool CompilerProcess::wait_for(short event) const {
    clockid_t clock{};
    if (clock_getcpuclockid(pid_, &clock) != 0) return true;  // it has ended, perhaps with an answer
    Standstill standstill(clock);
    pollfd other{socket_.number(), static_cast<short>(event | POLLRDHUP), 0};
    while (poll(&other, 1, static_cast<int>(kLookEvery.count())) == 0)
        if (standstill.look() >= kStandstillMax) return false;
    return true;
}

bool CompilerProcess::has_ended() const {
    if (!socket_.is_open()) return true;
    pollfd other{socket_.number(), POLLRDHUP, 0};
    return poll(&other, 1, 0) > 0;
}

std::optional<Result<Generated>> CompilerProcess::generate(const GenerateRequest& request, const Bounds& bounds) {
    const ByteBuffer question = encode_question(request, bounds);
    if (!send_message(socket_.number(), question, [this] { return wait_for(POLLOUT); }) || !wait_for(POLLIN))
        return std::nullopt;
    const auto answer = receive_message(socket_.number(), kAnswerBytesMax);
    if (!answer) return std::nullopt;
    if (is_last(*answer)) close();
    return decode_answer(*answer, request.name);
}

CompilerProcesses& CompilerProcesses::of_process() {
    static constinit MadeInEachProcess<CompilerProcesses> made;
    return made.get([] { return new CompilerProcesses; });
}

Result<CompilerProcess> CompilerProcesses::take() {
    std::optional<CompilerProcess> spare;  // ends after the lock is released: that may take a second
    {
        const MutexLock lock(mutex_);
        spare = std::exchange(spare_, std::nullopt);
    }
    if (spare && !spare->has_ended()) return std::move(*spare);
    return CompilerProcess::begin();
}

// Keeps one process: if several were given back, the last one. Replaces a process that has ended, so that the next piece need not wait for one.
void CompilerProcesses::give_back(CompilerProcess process) {
    if (process.has_ended()) {
        auto another = CompilerProcess::begin();
        if (!another) return;
        process = std::move(*another);
    }
    std::optional<CompilerProcess> former;  // ends after the lock is released
    const MutexLock lock(mutex_);
    former = std::exchange(spare_, std::nullopt);
    spare_.emplace(std::move(process));
}

Result<Generated> CompilerProcesses::generate(const GenerateRequest& request, const Bounds& bounds) {
    for (int turn = 0; turn < 2; ++turn) {  // another process may have ended the first
        ROVE_TRY(CompilerProcess process, take());
        auto generated = process.generate(request, bounds);
        if (!generated) continue;
        give_back(std::move(process));
        return std::move(*generated);
    }
    return fail(
        ErrorCode::failed,
        "{} does not compile: the process that compiled it was ended or stopped, perhaps because memory ran out",
        request.name);
}

}  // namespace rove::bitcode
