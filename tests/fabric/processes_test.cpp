// Links between two processes, one of which may be killed at any time.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

#include "fabrics.hpp"
#include "open_fabric.hpp"
#include "wire/control.hpp"

namespace rove::fabric {
namespace {

using Time = std::chrono::steady_clock;

// The program beside this one, which answers calls (peer.cpp).
class PeerProcess {
public:
    // A stream's socket is connected before the process is there.
    explicit PeerProcess(std::string lane, int socket = -1) : socket_(socket) {
        std::array<int, 2> in{}, out{};
        if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "test_fabric_peer";
        std::array<char*, 3> arguments = {program.data(), lane.data(), nullptr};
        if (socket_ >= 0) posix_spawn_file_actions_adddup2(&actions, socket_, kStreamDescriptor);
        const int spawned = posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments.data(), environ);
        posix_spawn_file_actions_destroy(&actions);
        close(in[0]);
        close(out[1]);
        if (socket_ >= 0) close(socket_);
        to_ = in[1];
        from_ = out[0];
        if (spawned != 0) throw std::runtime_error("no process: " + program);
    }
    PeerProcess(const PeerProcess&) = delete;
    ~PeerProcess() { (void)end(); }

    [[nodiscard]] bool meet(Link& link) {
        if (socket_ >= 0) return true;
        const auto size = static_cast<std::uint32_t>(link.offer().size());
        if (write(to_, &size, sizeof size) != sizeof size || write(to_, link.offer().data(), size) != size)
            return false;
        std::uint32_t theirs = 0;
        if (!read_all(&theirs, sizeof theirs) || theirs > wire::control::kOfferBytesMax) return false;
        ByteBuffer offer(theirs);
        return read_all(offer.data(), theirs) && link.connect(offer).has_value();
    }
    void kill_it() {
        if (process_ > 0) kill(process_, SIGKILL);  // -1 names every process of this user
        (void)end();
    }
    // Its exit status, once it has ended: it does when its input ends.
    [[nodiscard]] int end() {
        if (process_ <= 0) return -1;
        close(to_);
        close(from_);
        int status = 0;
        waitpid(process_, &status, 0);
        process_ = -1;
        return status;
    }

private:
    bool read_all(void* data, std::size_t size) {
        for (std::size_t at = 0; at < size;) {
            const ssize_t got = read(from_, static_cast<char*>(data) + at, size - at);
            if (got <= 0) return false;
            at += static_cast<std::size_t>(got);
        }
        return true;
    }

    int socket_ = -1;
    pid_t process_ = -1;
    int to_ = -1, from_ = -1;
};

class Processes : public testing::TestWithParam<const char*> {
protected:
    [[nodiscard]] std::unique_ptr<Fabric> open() {
        auto opened = open_fabric(GetParam());
        if (!opened) throw std::runtime_error(opened.error().message());
        return std::move(*opened);
    }
    [[nodiscard]] static bool is_stream() { return std::string_view(GetParam()).starts_with("stream"); }
    // A peer for a new link.
    [[nodiscard]] PeerProcess open_peer() {
        if (!is_stream()) {
            link = std::move(*fabric->open_link());
            return PeerProcess(GetParam());
        }
        const auto [mine, other] = std::string_view(GetParam()) == "stream_tcp" ? tcp_pair() : socket_pair();
        link = std::move(*fabric->open_stream(mine, kTestKeys));
        return PeerProcess(GetParam(), other);
    }
    // The time of a call and its reply, or nothing: none came.
    std::optional<std::chrono::nanoseconds> call(std::uint64_t number, std::size_t bytes) {
        const auto begin = Time::now();
        if (!send(*link, Traffic::calls, number, bytes)) return std::nullopt;
        while (!take(*link, Traffic::replies, number)) {
            fabric->progress();
            if (Time::now() - begin > std::chrono::seconds(20) || link->broken() != nullptr) return std::nullopt;
        }
        return Time::now() - begin;
    }

    std::unique_ptr<Fabric> fabric = open();
    std::unique_ptr<Link> link;
};

INSTANTIATE_TEST_SUITE_P(On, Processes, testing::Values("direct", "stream_unix", "stream_tcp", "ucx_shm", "ucx_tcp"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Processes, CallsOfEverySizeAreAnswered) {
    PeerProcess peer = open_peer();
    ASSERT_TRUE(peer.meet(*link));
    std::uint64_t number = 0;
    for (const std::size_t bytes : {0UL, 8UL, 32UL, 33UL, 4096UL, 100'000UL, wire::kPayloadBytesMax})
        for (unsigned i = 0; i < 20; ++i) ASSERT_TRUE(call(number++, bytes)) << bytes;
    std::vector<std::chrono::nanoseconds> times;
    for (unsigned i = 0; i < 5000; ++i) times.push_back(call(number++, 8).value_or(std::chrono::hours(1)));
    std::nth_element(times.begin(), times.begin() + 2500, times.end());
    std::cout << GetParam() << ": half a round trip of 8 bytes, median " << times[2500].count() / 2 << " ns\n";
    EXPECT_EQ(0, peer.end());
}

// Killed while it answers, while it connects and before it has met: nothing of it may end us.
TEST_P(Processes, APeerThatIsKilledHurtsNobody) {
    for (unsigned round = 0; round < 20; ++round) {
        PeerProcess peer = open_peer();
        ASSERT_TRUE(peer.meet(*link));
        std::uint64_t number = 0;
        for (unsigned calls = 3 * (round % 4); calls > 0; --calls) ASSERT_TRUE(call(number++, 5000));
        while (number % 50 < round && send(*link, Traffic::calls, number, 5000)) ++number;
        for (unsigned turn = round; turn > 0; --turn) fabric->progress();
        peer.kill_it();
        // A message lane notices; memory does not (that is the control connection's business).
        const bool tcp = is_stream() || std::string_view(GetParam()) == "ucx_tcp";
        const auto limit = Time::now() + (tcp ? std::chrono::milliseconds(10'000) : std::chrono::milliseconds(20));
        for (; Time::now() < limit && link->broken() == nullptr; ++number) {
            (void)send(*link, Traffic::calls, number, 5000);
            fabric->progress();
        }
        EXPECT_EQ(tcp, link->broken() != nullptr) << round;
    }
    // The fabric itself is as good as new.
    PeerProcess peer = open_peer();
    ASSERT_TRUE(peer.meet(*link));
    EXPECT_TRUE(call(0, 8));
}

}  // namespace
}  // namespace rove::fabric
