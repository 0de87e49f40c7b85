// Links between two processes, one of which may be killed at any time.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "base/process.hpp"
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
    explicit PeerProcess(std::string lane, int socket = -1) : is_stream_(socket >= 0) {
        const Descriptor stream(socket);
        const std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "test_fabric_peer";
        ProcessOptions options{.in = ProcessOptions::kPipe, .err = STDERR_FILENO};
        if (is_stream_) options.descriptors = {{socket, kStreamDescriptor}};
        process_ = value_or_throw(Process::start({program, std::move(lane)}, options));
    }

    PeerProcess(const PeerProcess&) = delete;
    ~PeerProcess() {
        if (process_.runs()) (void)end();
    }

    [[nodiscard]] bool meet(Link& link) {
        if (is_stream_) return true;
        const auto size = static_cast<std::uint32_t>(link.offer().size());
        if (write(process_.in().number(), &size, sizeof size) != sizeof size ||
            write(process_.in().number(), link.offer().data(), size) != size)
            return false;
        const std::optional<ByteBuffer> theirs = take_offer();
        return theirs && link.connect(*theirs).has_value();
    }
    // It has not seen the other end's then.
    [[nodiscard]] std::optional<ByteBuffer> take_offer() {
        std::uint32_t size = 0;
        if (!read_all(&size, sizeof size) || size > wire::control::kOfferBytesMax) return std::nullopt;
        ByteBuffer offer(size);
        if (!read_all(offer.data(), size)) return std::nullopt;
        return offer;
    }
    void kill_it() { process_ = {}; }
    // Its exit status, once it has ended: it does when its input ends.
    [[nodiscard]] int end() {
        process_.in().close();
        process_.out().close();
        return *process_.wait();
    }

private:
    bool read_all(void* data, std::size_t size) {
        for (std::size_t at = 0; at < size;) {
            const ssize_t got = read(process_.out().number(), static_cast<char*>(data) + at, size - at);
            if (got <= 0) return false;
            at += static_cast<std::size_t>(got);
        }
        return true;
    }

    bool is_stream_;
    Process process_;
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
        while (!take(*link, Traffic::prompt, number)) {
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

class ProcessesThatShareMemory : public Processes {};
// Over the others an offer is an address, and that nobody is there is noticed later.
INSTANTIATE_TEST_SUITE_P(On, ProcessesThatShareMemory, testing::Values("direct", "ucx_shm"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ProcessesThatShareMemory, AnOfferOfAPeerThatIsKilledBeforeItIsMetIsRefused) {
    for (unsigned round = 0; round < 3; ++round) {
        PeerProcess peer = open_peer();
        const std::optional<ByteBuffer> offer = peer.take_offer();
        ASSERT_TRUE(offer);
        peer.kill_it();
        const Status status = link->connect(*offer);
        ASSERT_FALSE(status);
        EXPECT_EQ(ErrorCode::unsupported, status.error().code()) << status.error().message();
        EXPECT_EQ(Lane::none, link->lane());
    }
    PeerProcess peer = open_peer();
    ASSERT_TRUE(peer.meet(*link));
    EXPECT_TRUE(call(0, 8));
}

}  // namespace
}  // namespace rove::fabric
