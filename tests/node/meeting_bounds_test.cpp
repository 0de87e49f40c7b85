// The bounds of meetings and members, the errors at each bound, and that others are still served.
#include <sys/mman.h>

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>

#include "control/channel.hpp"
#include "control/reception.hpp"
#include "engine_view.hpp"
#include "raw_meeting.hpp"

namespace rove::test {
namespace {

int one_more(int x) {
    return x + 1;
}

// A link that costs nothing: all of them share one empty mailbox.
class EmptyLink final : public fabric::Link {
public:
    EmptyLink() {
        static auto* const region =
            static_cast<fabric::Region*>(mmap(nullptr, sizeof(fabric::Region), PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        for (std::size_t i = 0; i < fabric::kTrafficKinds; ++i) incoming_[i] = fabric::RingReader(region->rings[i], 1);
    }
    [[nodiscard]] const ByteBuffer& offer() const override { return offer_; }
    [[nodiscard]] Status connect(Bytes) override { return {}; }
    [[nodiscard]] fabric::Lane lane() const override { return fabric::Lane::none; }

protected:
    void transmit(fabric::Traffic, std::uint64_t, std::size_t) override {}
    void transmit_credit(fabric::Traffic) override {}
    void wake_peer() override {}

private:
    ByteBuffer offer_;
};

TEST(MeetingBounds, ANodeWithAsManyPeersAsItMayHaveSaysSo) {
    Node node(options(unix_address()));
    Node first(options());
    const Peer peer = first.connect(node.address());
    Node in_between(options());
    const auto core = [&] {  // of the node, by a link that it has itself
        Node other(options(unix_address()));
        return detail::Inside::core(node.connect(other.address()));
    }();
    ASSERT_TRUE(soon([&] { return core->first_engine().peers().count() == 1; }));
    std::vector<std::pair<std::shared_ptr<PeerState>, std::uint64_t>> peers;
    const auto add = [&](std::size_t number) {
        const auto id = client_id(0, static_cast<std::uint16_t>(20'000 + number));
        auto adopted = core->first_engine().peers().adopt(
            {.peer = {.id = id, .my_id = 0}, .resident = {}, .hang_up = {}}, std::make_unique<EmptyLink>(), nullptr);
        if (adopted) peers.emplace_back(adopted->peer, adopted->meeting);
        return adopted ? ErrorCode::ok : adopted.error().code();
    };
    while (peers.size() + 1 < kPeersMax) ASSERT_EQ(add(peers.size()), ErrorCode::ok) << peers.size();
    EXPECT_EQ(add(kPeersMax), ErrorCode::overloaded);
    const Error full = error_of([&] { (void)in_between.connect(node.address()); });
    EXPECT_EQ(full.code(), ErrorCode::overloaded);
    EXPECT_NE(full.message().find("16384 peers"), std::string::npos) << full.message();
    EXPECT_NE(full.message().find(node.address()), std::string::npos) << full.message();
    EXPECT_EQ(peer.sync(fn<one_more>, 1), 2) << "the others go on";
    const std::size_t left = EngineView::left_to_tend(core->first_engine());
    EXPECT_GT(left, kPeersMax / 2 - 1000) << "memory is to go back within seconds, however many peers there are";
    EXPECT_LT(left, kPeersMax / 2) << "the lock is to be free in between";
    for (const auto& [state, meeting] : peers)
        core->first_engine().peers().lose(state, meeting, Error(ErrorCode::disconnected, "it left"));
    peers.clear();
    EXPECT_TRUE(soon([&] { return core->first_engine().peers().count() <= 1; }));
    EXPECT_EQ(in_between.connect(node.address()).sync(fn<one_more>, 2), 3) << "there is room again";
    EXPECT_EQ(peer.sync(fn<one_more>, 3), 4);
}

// They have proven who they are, and ask for nothing.
TEST(MeetingBounds, ProvenMeetingsThatGoNotOnAreCounted) {
    Node node(options(unix_address()));
    Node honest(options());
    const Peer peer = honest.connect(node.address());
    std::vector<Raw> stalled;
    for (std::size_t i = 0; i < control::kMeetingsMax; ++i) {
        stalled.emplace_back(node.address());
        stalled.back().send(encode(Hello{}));
        ASSERT_TRUE(decode<Challenge>(stalled.back().receive())) << i;
        stalled.back().send(encode(ProofGiven{}));
    }
    Node late(options());
    std::optional<Error> full;
    ASSERT_TRUE(soon([&] {  // once the last proof has been read
        try {
            (void)late.connect(node.address());
        } catch (const Error& error) {
            full = error;
        }
        return full.has_value();
    }));
    EXPECT_EQ(full->code(), ErrorCode::overloaded);
    EXPECT_NE(full->message().find("256 meetings"), std::string::npos) << full->message();
    EXPECT_EQ(peer.sync(fn<one_more>, 1), 2);
    stalled.clear();
    ASSERT_TRUE(soon([&] {
        try {
            return late.connect(node.address()).sync(fn<one_more>, 2) == 3;
        } catch (const Error&) {
            return false;
        }
    }));
}

// What is said to somebody who reads nothing is kept up to a bound, and then the connection ends.
TEST(MeetingBounds, WhoReadsNothingIsHungUpOn) {
    std::set<control::Channel*> open;
    asio::io_context io;
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    control::Socket socket(io);
    socket.assign(asio::local::stream_protocol(), ends[0]);
    const Raw deaf(ends[1]);
    const auto channel = std::make_shared<control::Channel>(std::move(socket), open);
    const ByteBuffer message(64 * 1024);
    std::size_t said = 0;
    const auto is_open = [&] { return channel->local_endpoint() != "nowhere"; };
    while (is_open() && said < 100 * message.size()) {
        channel->say(message);
        said += message.size();
        if (said >= 14 * message.size()) io.poll();  // so that most of it is being written when more is said
    }
    EXPECT_FALSE(is_open());
    EXPECT_GE(said, control::kUnsentBytesMax) << "that much is kept for who is slow";
    EXPECT_LE(said, control::kUnsentBytesMax + 6 * message.size()) << "beside what the kernel takes";
    EXPECT_TRUE(deaf.is_ended());
}

std::vector<char> make(std::uint64_t bytes) {
    return std::vector<char>(bytes, 'x');
}
// Takes 20 s: that is how long a large result waits for a caller that takes nothing.
TEST(MeetingBounds, WhoTakesNothingOfALargeResultIsCutOffWithTheReason) {
    NodeOptions frugal = options(unix_address());
    frugal.threads = 1;
    Node node(frugal);
    NodeOptions by_hand = options();
    by_hand.own_thread = false;
    Node idle(by_hand), other(options());
    const Peer peer = idle.connect(node.address()), honest = other.connect(node.address());
    Call<std::vector<char>> call = peer.async(fn<make>, std::uint64_t{8} << 20U);
    const auto state = detail::Inside::state(peer);
    const auto begin = std::chrono::steady_clock::now();
    while (detail::Inside::core(peer)->first_engine().peers().linked(*state) &&
           std::chrono::steady_clock::now() - begin < 60s) {  // set by its control thread
        EXPECT_EQ(honest.sync(fn<one_more>, 1), 2);
        std::this_thread::sleep_for(100ms);
    }
    EXPECT_GT(std::chrono::steady_clock::now() - begin, 15s) << "who is slow has time";
    const Error error = error_of([&] { (void)call.get(); });
    EXPECT_EQ(error.code(), ErrorCode::disconnected);
    EXPECT_NE(error.message().find("does not take its replies"), std::string::npos) << error.message();
}

}  // namespace
}  // namespace rove::test
