// `rove node` as whoever starts it meets it: signals while it starts, addresses that are taken, and the memory that it keeps.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>

#include "../mailbox_memory.hpp"
#include "bytes.hpp"
#include "process.hpp"
#include "rove/rove.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string path_of(const std::string& name) {
    static int number = 0;
    return (scratch() / (name + std::to_string(number++))).string();
}

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
}

// A `rove node` that may never listen.
class Starting {
public:
    explicit Starting(const std::vector<std::string>& options, int error = ProcessOptions::kAsOutput)
        : output_(path_of("starting")) {
        std::vector<std::string> command{rove(), "node"};
        command.insert(command.end(), options.begin(), options.end());
        const Descriptor out = value_or_throw(open_for_output(output_));
        process_ = value_or_throw(Process::start(command, {.out = out.number(), .err = error}));
    }
    void signal(int number) const { process_.signal(number); }
    // Its exit status; nothing: it goes on.
    std::optional<int> ended_within(milliseconds time) { return process_.wait(Clock::now() + time); }
    [[nodiscard]] std::string output() const {
        std::ifstream stream(output_);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    [[nodiscard]] bool says(std::string_view words) const { return output().find(words) != std::string::npos; }

private:
    std::string output_;
    Process process_;
};

TEST(NodeCommand, EndsAtASignalWhileAPackagesConstructorNeverReturns) {
    const fs::path packages = path_of("packages");
    fs::create_directory(packages);
    fs::copy_file(package("stuck_at_start.cpp"), packages / "stuck.rove");
    Starting node({"--listen", "127.0.0.1:0", "--packages", packages.string()});
    ASSERT_TRUE(soon([&] { return node.says("constructing"); })) << node.output();
    node.signal(SIGTERM);
    EXPECT_EQ(node.ended_within(seconds(20)), 0) << node.output();
    EXPECT_TRUE(node.says("the node ends before it has started")) << node.output();
}

TEST(NodeCommand, EndsInTimeWhereNobodyReadsWhatItSays) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const Descriptor read_end(ends[0]), write_end(ends[1]);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    const std::string page(4096, '.');
    while (write(ends[1], page.data(), page.size()) > 0) continue;
    fcntl(ends[1], F_SETFL, 0);
    Starting node({"--listen", "127.0.0.1:0", "--grace", "60"}, write_end.number());
    ASSERT_TRUE(soon([&] { return node.says("listening"); })) << node.output();
    node.signal(SIGTERM);
    EXPECT_EQ(node.ended_within(seconds(30)), 0);
}

// From the look at the path until somebody listens there: otherwise each of several takes the others' sockets for some that were left.
TEST(NodeCommand, NodesLookAtOnePathOneAfterTheOther) {
    const fs::path folder = path_of("same");
    fs::create_directory(folder);
    const std::string path = folder / "node";
    const auto listens = [&path] { return std::make_unique<Node>(NodeOptions{.listen = "unix:" + path}); };
    const Descriptor another(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(flock(another.number(), LOCK_EX), 0);
    std::future<std::unique_ptr<Node>> made = std::async(std::launch::async, listens);
    EXPECT_EQ(made.wait_for(milliseconds(200)), std::future_status::timeout);
    EXPECT_FALSE(fs::exists(path));
    flock(another.number(), LOCK_UN);
    made.get().reset();
    ASSERT_EQ(flock(another.number(), LOCK_EX), 0);
    listens();  // not for ever: anybody who may read the folder can do that
}

// Another one, which took this one for dead, listens at its path by now.
TEST(NodeCommand, LeavesTheSocketFileOfAnotherOne) {
    const std::string path = path_of("taken_over");
    auto first = std::make_unique<Node>(NodeOptions{.listen = "unix:" + path});
    fs::remove(path);
    const Node second(NodeOptions{.listen = "unix:" + path});
    first.reset();
    EXPECT_TRUE(fs::exists(path));
}

TEST(NodeCommand, EndsAtASignalWhileItJoinsANodeThatDoesNotAnswer) {
    const Descriptor silent(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(silent.number(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(listen(silent.number(), 8), 0);
    ASSERT_EQ(getsockname(silent.number(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    const std::string path = path_of("joins");
    Starting node({"--listen", "unix:" + path, "--join", "127.0.0.1:" + std::to_string(ntohs(address.sin_port))});
    const Descriptor met(accept4(silent.number(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(fs::is_socket(path));
    node.signal(SIGINT);
    EXPECT_EQ(node.ended_within(seconds(20)), 0) << node.output();
    EXPECT_TRUE(node.says("the node ends before it has started")) << node.output();
    EXPECT_FALSE(fs::exists(path)) << "nobody listens there any more";
}

TEST(NodeCommand, DoesNotWaitForAListenerWhoseQueueIsFull) {
    const std::string path = path_of("full");
    const sockaddr_un address = address_of(path);
    const auto* const raw = reinterpret_cast<const sockaddr*>(&address);
    const Descriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listener.number(), raw, sizeof address), 0);
    ASSERT_EQ(listen(listener.number(), 0), 0);
    std::vector<Descriptor> queue;
    do queue.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    while (queue.size() < 100 && connect(queue.back().number(), raw, sizeof address) == 0);
    ASSERT_EQ(errno, EAGAIN);
    Starting node({"--listen", "unix:" + path});
    EXPECT_EQ(node.ended_within(seconds(20)), 1) << node.output();
    EXPECT_TRUE(node.says("cannot listen on unix:" + path + ": another process does; choose another path"))
        << node.output();
    EXPECT_TRUE(fs::is_socket(path));
}

TEST(NodeCommand, SaysWhereAPathIsNoSocket) {
    const std::string path = path_of("file");
    std::ofstream(path) << "text";
    const Ran ran = run({rove(), "node", "--listen", "unix:" + path});
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.err.find("cannot listen on unix:" + path + ": it is there and is no socket; choose another path"),
              std::string::npos)
        << ran.err;
    EXPECT_TRUE(fs::is_regular_file(path));
}

TEST(NodeCommand, APayloadFileWithoutAnEndIsReadToTheLimitOnly) {
    const Ran ran = run({rove(), "call", "127.0.0.1:1", "none.rove:none", "--payload-file", "/dev/zero"});
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.err.find("the payload file /dev/zero has more than the 33554432 bytes that a call may have"),
              std::string::npos)
        << ran.err;
}

// The kernel ends a process by a signal that makes a file larger than it may: mailboxes, memory for code, buffers.
TEST(NodeCommand, LivesWhereItMayMakeNoLargeFiles) {
    (void)scratch();
    const NodeProcess server;
    const auto limit_to = [&server](rlim_t bytes) {
        const rlimit most{.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
        ASSERT_EQ(prlimit(server.pid(), RLIMIT_FSIZE, &most, nullptr), 0);
    };
    const auto or_overloaded = [](const auto& work) {  // where no other memory is found for it
        try {
            work();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::overloaded) << error.what();
        }
    };
    const Entry echo = Package::open(package("basics.c")).entry("echo");
    Node before;
    const Peer peer = before.connect(server.address());
    limit_to(1'000'000);
    or_overloaded([&] { (void)peer.call(echo, bytes("x")).get(); });
    or_overloaded([&] { (void)peer.allocate<char>(200'000'000).get(); });
    or_overloaded([&] {
        Node next;
        (void)next.connect(server.address()).call(echo, bytes("x")).get();
    });
    limit_to(RLIM_INFINITY);
    Node after;
    EXPECT_EQ(text(after.connect(server.address()).call(echo, bytes("x")).get()), "x");
}

// The next descriptor that the node opens has the number of stderr then.
TEST(NodeCommand, WritesNoLogIntoWhatHasItsErrorsPlace) {
    (void)scratch();
    const NodeProcess server({"--log", "debug", "--fabric", "tcp"});
    NodeOptions options;
    options.fabric = FabricChoice::tcp;
    {
        Node node(options);
        (void)node.connect(server.address())
            .call(Package::open(package("closes_stderr.c")).entry("closes_stderr"))
            .get();
    }
    for (int i = 0; i < 5; ++i) {
        Node node(options);
        const Peer peer = node.connect(server.address());
        EXPECT_EQ(text(peer.call(Package::open(package("basics.c")).entry("echo"), bytes("x")).get()), "x");
    }
}

// A node whose stdout, and stderr, nobody but this process reads.
Process node_that_writes_to_a_pipe(bool errors_too) {
    return value_or_throw(Process::start({rove(), "node", "--listen", "127.0.0.1:0"},
                                         {.err = errors_too ? ProcessOptions::kAsOutput : STDERR_FILENO}));
}
void expect_end(Process& node) {
    node.signal(SIGTERM);
    EXPECT_EQ(node.wait(Clock::now() + seconds(20)), 0);
}

TEST(NodeCommand, EndsInGraceWhereNobodyReadsWhatItWrites) {
    (void)scratch();
    Process node = node_that_writes_to_a_pipe(true);
    EXPECT_TRUE(node.read_line().starts_with("listening "));
    node.out().close();
    expect_end(node);
}

// What functions print is no result of the command's.
TEST(NodeCommand, EndsWellWhereNobodyReadsWhatItsFunctionsPrint) {
    const std::string prints = package("prints.c");
    for (const char* const function : {":print", ":print_later"}) {  // before it is told to end, and while it does
        Process node = node_that_writes_to_a_pipe(false);
        const std::string line = node.read_line(), address = line.substr(line.find(' ') + 1);
        node.out().close();
        const Ran ran = run({rove(), "call", address, prints + function, "--payload-text", "to nobody"});
        EXPECT_EQ(ran.status, 0) << ran.err;
        expect_end(node);
    }
}

// Nobody could find it.
TEST(NodeCommand, EndsWhereItsAddressCannotBePrinted) {
    const Descriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
    const auto node_at = [&full](const std::string& address) {
        return value_or_throw(Process::start({rove(), "node", "--listen", address, "--log", "off"},
                                             {.out = full.number(), .err = STDERR_FILENO}));
    };
    Process lost = node_at("127.0.0.1:0");
    EXPECT_EQ(lost.wait(Clock::now() + seconds(20)), 1);
    const Ran closed = run({"sh", "-c", "exec \"$0\" node --listen 127.0.0.1:0 --log off >&-", rove()});
    EXPECT_EQ(closed.status, 1);
    EXPECT_NE(closed.err.find("rove: the output cannot be written"), std::string::npos) << closed.err;
    const std::string path = path_of("known");
    Process known = node_at("unix:" + path);
    ASSERT_TRUE(soon([&] { return run({rove(), "functions", "unix:" + path}).status == 0; }));
    known.signal(SIGTERM);
    EXPECT_EQ(known.wait(Clock::now() + seconds(20)), 1) << "its output could not be written";
}

// What it opens itself would have their numbers, and functions take these for standard streams.
TEST(NodeCommand, OpensNothingInPlaceOfItsStandardStreams) {
    const std::string path = path_of("closed");
    Process node = value_or_throw(
        Process::start({"sh", "-c", "exec \"$0\" node --listen \"$1\" <&- >&- 2>&-", rove(), "unix:" + path}));
    ASSERT_TRUE(soon([&] { return run({rove(), "functions", "unix:" + path}).status == 0; }));
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        EXPECT_EQ(fs::read_symlink("/proc/" + std::to_string(node.pid()) + "/fd/" + std::to_string(stream)),
                  "/dev/null");
    node.signal(SIGTERM);
    EXPECT_EQ(node.wait(Clock::now() + seconds(20)), 1) << "its output could not be written";
}

// Its own way with signals is its own.
TEST(NodeCommand, LetsWhatItsFunctionsStartBeEnded) {
    (void)scratch();
    NodeProcess server;
    Node client;
    const Peer peer = client.connect(server.address());
    const Package package = Package::open(test::package("starts_programs.c"));
    for (const char* const function : {"end_fork", "end_program"}) {
        RawCall call = peer.call(package.entry(function));
        const auto result = call.get();
        int signal = 0;
        ASSERT_EQ(result.size(), sizeof signal);
        std::memcpy(&signal, result.data(), sizeof signal);
        EXPECT_EQ(signal, SIGTERM) << function;
    }
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0);
}

TEST(NodeCommand, EndsInOrderWhereAFunctionHasLeftAThread) {
    (void)scratch();
    NodeProcess server;
    Node client;
    RawCall call =
        client.connect(server.address()).call(Package::open(test::package("leaves_thread.c")).entry("leave"));
    EXPECT_EQ(call.get().size(), 0U);
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0) << server.log();
}

// How many times the threads of a process have waited and been woken, ever.
std::uint64_t wakes_of(pid_t process) {
    std::uint64_t all = 0;
    for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
        std::ifstream status(task.path() / "status");
        const std::string_view name = "voluntary_ctxt_switches:";
        for (std::string line; std::getline(status, line);)
            if (line.starts_with(name)) all += std::stoull(line.substr(name.size()));
    }
    return all;
}

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
constexpr std::uint64_t kOthersWakes = 33;  // in 3 s: of the sanitizer's own thread
#else
constexpr std::uint64_t kOthersWakes = 0;
#endif

// Little more than once a second; 130 times if its threads look around while it sleeps.
TEST(NodeCommand, WakesSeldomWhileItIsIdle) {
    (void)scratch();
    const NodeProcess server;
    Node client;
    const Peer peer = client.connect(server.address());
    std::uint64_t wakes = 0;
    EXPECT_TRUE(soon([&] {
        (void)peer.ping().get();
        std::this_thread::sleep_for(seconds(3));  // for the first second after a call it does not count as idle
        const std::uint64_t before = wakes_of(server.pid());
        std::this_thread::sleep_for(seconds(3));
        wakes = wakes_of(server.pid()) - before;
        return wakes <= 6 + kOthersWakes;
    })) << wakes
        << " in 3 s";
    (void)peer.ping().get();
}

TEST(NodeCommand, GivesBackTheMemoryOfPeersThatAreQuiet) {
    (void)scratch();
    const NodeProcess server({"--fabric", "shm"});
    NodeOptions options;
    options.fabric = FabricChoice::shm;
    Node client(options);
    const Peer peer = client.connect(server.address());
    const Entry echo = Package::open(package("basics.c")).entry("echo");
    const std::vector<std::byte> large(200'000);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(peer.call(echo, large).get().size(), large.size());
    EXPECT_GT(memory_of_mailboxes(server.pid()), std::size_t{1} << 20U);
    EXPECT_TRUE(soon([&] { return memory_of_mailboxes(server.pid()) <= std::size_t{64} << 10U; }))
        << memory_of_mailboxes(server.pid());
    EXPECT_EQ(peer.call(echo, large).get().size(), large.size());
}

// Also the first after it was idle: by then nobody has looked around for some time.
TEST(NodeCommand, NoticesAFunctionThatRunsLongAfterItWasIdle) {
    (void)scratch();
    const NodeProcess server;
    Node client, other;
    const Peer peer = client.connect(server.address()), quick = other.connect(server.address());
    const Entry sleeps = Package::open(package("sleeps.c")).entry("sleeps");
    const int short_ms = 0, long_ms = 12'000;
    (void)peer.call(sleeps, std::as_bytes(std::span(&short_ms, 1))).get();
    (void)quick.ping().get();
    std::this_thread::sleep_for(seconds(3));
    const RawCall runs = peer.call(sleeps, std::as_bytes(std::span(&long_ms, 1)));
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_TRUE(quick.ping().wait_for(seconds(8))) << "the thread on watch sleeps on";
}

TEST(NodeCommand, SaysThatItIsOutOfDescriptorsAndGoesOn) {
    const std::string path = path_of("few.sock");
    const NodeProcess server({}, "unix:" + path);
    const auto limit = [&](rlim_t descriptors) {
        const rlimit both{.rlim_cur = descriptors, .rlim_max = 4096};
        return prlimit(server.pid(), RLIMIT_NOFILE, &both, nullptr);
    };
    const auto folder = fs::directory_iterator("/proc/" + std::to_string(server.pid()) + "/fd");
    ASSERT_EQ(limit(static_cast<rlim_t>(std::distance(folder, fs::directory_iterator())) + 2), 0);
    std::vector<Descriptor> held;
    for (int i = 0; i < 6; ++i) {
        held.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const sockaddr_un address = address_of(path);
        ASSERT_EQ(connect(held.back().number(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    const auto told = [&] { return server.log().find("cannot take connections (Too many open files)"); };
    EXPECT_TRUE(soon([&] { return told() != std::string::npos; })) << server.log();
    EXPECT_EQ(server.log().find("cannot take connections", told() + 1), std::string::npos)
        << "once, until it can again";
    ASSERT_EQ(limit(1024), 0);
    Node client;
    (void)client.connect(server.address()).ping().get();
}

TEST(CallCommand, ItsTimeBoundsTheSendingToo) {
    (void)scratch();
    const NodeProcess node({"--log", "info"});
    const std::string file = path_of("large");
    std::ofstream(file) << std::string(8'000'000, 'x');
    auto calls = std::async(std::launch::async, [&] {
        return run({rove(), "call", node.address(), package("basics.c") + ":echo", "--payload-file", file, "--repeat",
                    "1000000", "--timeout", "1"},
                   seconds(40));
    });
    EXPECT_TRUE(soon([&] { return node.log().find(": met ") != std::string::npos; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    node.stop();
    const Ran ran = calls.get();
    node.signal(SIGCONT);
    EXPECT_EQ(ran.status, 1) << "it did not end";
    EXPECT_NE(ran.err.find("within 1 s"), std::string::npos) << ran.err;
}

// Its functions share the process with it, and with that what signals do.
TEST(NodeCommand, EndsAtASignalThatAFunctionIgnores) {
    (void)scratch();
    NodeProcess server;
    Node client({.log = "off"});
    EXPECT_EQ(client.connect(server.address())
                  .call(Package::open(test::package("takes_signals.c")).entry("ignore_ends"))
                  .get()
                  .size(),
              2U);
    const auto ignores = [&] {
        std::ifstream status("/proc/" + std::to_string(server.pid()) + "/status");
        for (std::string line; std::getline(status, line);)
            if (line.starts_with("SigIgn:"))
                return (std::stoull(line.substr(7), nullptr, 16) >> (SIGTERM - 1) & 1) != 0;
        return true;
    };
    ASSERT_TRUE(soon([&] { return !ignores(); })) << "it stays deaf";
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0);
}

TEST(FunctionsCommand, IsLetInAsCallsAre) {
    (void)scratch();
    const std::string cookie = path_of("cookie");
    const NodeProcess node({"--cookie", cookie});
    EXPECT_EQ(run({rove(), "functions", node.address()}).status, 1) << "by another cookie";
    EXPECT_EQ(run({rove(), "functions", node.address(), "--cookie", cookie, "--fabric", "tcp"}).status, 0);
    const std::string mistyped = cookie + "s";
    std::vector<std::string> words{rove(), "functions", node.address(), "--cookie", mistyped};
    for (int i = 0; i < 2; ++i) {
        const Ran ran = run(words);
        EXPECT_EQ(ran.status, 2);
        EXPECT_NE(ran.err.find(mistyped), std::string::npos) << ran.err;
        EXPECT_FALSE(std::filesystem::exists(mistyped)) << words[1] << " has made it";
        words = {rove(), "call", node.address(), "x.rove:f", "--cookie", mistyped};
    }
}

Task<int> eight() {
    co_return 8;
}

Task<int> awaits(Task<int>& task) {
    co_return co_await task;
}
Task<int> awaits_twice(Task<int>& task) {
    auto [first, second] = co_await when_all(awaits(task), awaits(task));
    co_return first + second;
}

TEST(MovedFrom, NodesPeersAndTasksSaySo) {
    const auto says_so = [](const auto& use) {
        try {
            use();
            ADD_FAILURE() << "nothing was said";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::invalid);
            EXPECT_NE(std::string(error.what()).find("moved from"), std::string::npos) << error.what();
        }
    };
    const NodeProcess server;
    Node from({.log = "off"});
    Peer link = from.connect(server.address());
    const Peer kept = std::move(link);
    Node to(std::move(from));
    int object = 0;
    // NOLINTBEGIN(bugprone-use-after-move,clang-analyzer-cplusplus.Move): what is tested
    says_so([&] { (void)from.connect("127.0.0.1:1"); });
    says_so([&] { (void)from.poll(); });
    says_so([&] { (void)from.address(); });
    says_so([&] { (void)from.id(); });
    says_so([&] { (void)from.node_count(); });
    says_so([&] { from.share("object", object); });
    says_so([&] { from.unshare("object"); });
    from.wake();
    says_so([&] { (void)link.ping(); });
    says_so([&] { (void)link.sync([](int x) { return x; }, 1); });
    says_so([&] { (void)link.async([](int x) { return x; }, 1); });
    says_so([&] { link.post([] {}); });
    says_so([&] { (void)link.allocate<int>(1); });
    says_so([&] { (void)link.functions(); });
    says_so([&] { (void)link.node(); });
    EXPECT_NO_THROW((void)kept.ping().get());
    Task<int> task = eight();
    Task<int> moved(std::move(task));
    says_so([&] { (void)sync_wait(task); });
    // NOLINTEND(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
    EXPECT_EQ(sync_wait(moved), 8);
    says_so([&] { (void)sync_wait(moved); });  // it has ended
    Task<int> twice = eight();
    Task<int> both = awaits_twice(twice);
    says_so([&] { (void)sync_wait(both); });
}

std::size_t resident_bytes(int pid) {
    std::ifstream statm("/proc/" + std::to_string(pid) + "/statm");
    std::size_t all = 0, resident = 0;
    statm >> all >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// The most that there ever was.
std::size_t peak_bytes(int pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    std::size_t kib = 0;
    for (std::string word; status >> word && kib == 0;)
        if (word == "VmHWM:") status >> kib;
    return kib * 1024;
}

TEST(NodeCommand, GivesBackWhatFunctionsHaveFreedBeyondItsBound) {
    constexpr std::size_t kSlack = 500UL << 20;
    const NodeProcess server;
    Node node({.own_thread = false, .log = "off"});
    const Peer peer = node.connect(server.address());
    const std::size_t before = resident_bytes(server.pid());
    for (int times = 0; times < 2;
         ++times) {  // what the C library calls free after the first time need not be in memory
        const Package hoard = Package::open(package("hoard.c"));
        ASSERT_GT(as<std::size_t>(peer.call(hoard.entry("hoard")).get()), kSlack);
        EXPECT_GT(peak_bytes(server.pid()), before + kSlack) << "it was never in memory";
        EXPECT_TRUE(soon([&] { return resident_bytes(server.pid()) < before + kSlack; }))
            << times << ": " << resident_bytes(server.pid()) / 1024 / 1024 << " MiB, and " << before / 1024 / 1024
            << " MiB at first";
    }
}

}  // namespace
}  // namespace rove::test
