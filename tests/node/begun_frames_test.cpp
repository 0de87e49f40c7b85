// A frame that is being filled in place while the link that it is for is cut, and the peer met again.
#include "bytes.hpp"
#include "hand_made.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

class BegunFrames : public OnFabrics {
protected:
    [[nodiscard]] long count() const { return as<long>(peer().call(entry_).get()); }
    [[nodiscard]] PeerState& state() const { return *detail::Inside::state(peer()); }
    // Another thread's call, for this one's frame may be open.
    void is_met_again() const {
        const auto core = detail::Inside::core(peer());
        const std::uint64_t meeting = state().meeting();
        core->first_engine().peers().lose(detail::Inside::state(peer()), meeting,
                                          Error(ErrorCode::disconnected, "the test cut it"));
        std::thread([&] { (void)peer().ping().get(); }).join();
        ASSERT_NE(state().meeting(), meeting);
        EXPECT_EQ(count(), 2);  // the peer has told its handle again
    }
    Entry entry_ = Package::open(package("basics.c")).entry("count");
};
ROVE_ON_FABRICS(BegunFrames);

TEST_P(BegunFrames, AreNotPostedOnALaterLink) {
    ASSERT_EQ(count(), 1);
    CallFrame frame = peer().begin(entry_, 8);
    ASSERT_NO_FATAL_FAILURE(is_met_again());
    const auto sent = peer().counters().frames_sent;
    const Error error = error_of([&] { frame.post(); });
    EXPECT_EQ(error.code(), ErrorCode::disconnected);
    EXPECT_NE(error.message().find("was lost before the frame for it was posted"), std::string::npos)
        << error.message();
    EXPECT_EQ(peer().counters().frames_sent, sent);
    EXPECT_EQ(count(), 3);
}

// Its link has ended, and nobody has a handle of it any more: the frame alone still refers to it.
TEST_P(BegunFrames, KeepThePeerThatTheyAreFor) {
    Node second(started(options(true)));
    for (const bool posts : {true, false}) {
        Node client(started(options()));
        const auto lost = [&](std::optional<Peer>& peer) {
            const std::weak_ptr<PeerState> state = detail::Inside::state(*peer);
            Peers& peers = detail::Inside::core(*peer)->first_engine().peers();
            peers.lose(state.lock(), state.lock()->meeting(), Error(ErrorCode::disconnected, "the test cut it"));
            peer.reset();
            return state;
        };
        std::optional<Peer> first = client.connect(server_->address()), other = client.connect(second.address());
        for (int i = 0; i < 2; ++i) (void)first->call(entry_).get();
        std::optional<CallFrame> frame = first->begin(entry_, 8);
        ASSERT_TRUE(detail::Inside::state(*first)->sends.has_open_frame());
        const auto kept = lost(first), gone = lost(other);
        const auto is_freed = [&client](const std::weak_ptr<PeerState>& state) {
            return soon([&] {
                client.wake();  // the leader looks
                return state.expired();
            });
        };
        EXPECT_TRUE(is_freed(gone)) << "nobody needs that one";
        EXPECT_FALSE(kept.expired());
        if (posts) EXPECT_EQ(error_of([&] { frame->post(); }).code(), ErrorCode::disconnected);
        frame.reset();
        EXPECT_TRUE(is_freed(kept)) << "nor this one now";
    }
}

// Nor does one that is dropped end what another thread has begun on the later link.
TEST_P(BegunFrames, AreDroppedOnTheirOwnLinkOnly) {
    ASSERT_EQ(count(), 1);
    auto earlier = std::make_unique<CallFrame>(peer().begin(entry_, 8));
    ASSERT_NO_FATAL_FAILURE(is_met_again());
    CallFrame later = peer().begin(entry_, 8);
    ASSERT_TRUE(state().sends.has_open_frame());
    earlier.reset();
    EXPECT_TRUE(state().sends.has_open_frame()) << "others would write into the frame that is being filled";
    later.post();
    EXPECT_EQ(count(), 4);
}

// The link is quiet while they are written, and gives back the memory that it does not need.
TEST_P(BegunFrames, KeepWhatIsWrittenIntoThemHoweverLongThatTakes) {
    const Entry echo = Package::open(package("basics.c")).entry("echo");
    const std::string sent(100'000, 'x');
    (void)peer().call(echo, bytes(sent)).get();  // the second is written in place
    CallFrame frame = peer().begin(echo, sent.size());
    std::ranges::copy(bytes(sent), frame.payload().begin());
    for (int second = 0; second < 4; ++second) detail::Inside::core(peer())->first_engine().each_second();
    EXPECT_EQ(text(frame.call().get()), sent);
}

TEST_P(BegunFrames, HaveNoPayloadOnceTheyAreMovedFrom) {
    CallFrame frame = peer().begin(entry_, 8);
    ASSERT_EQ(frame.payload().size(), 8U);
    CallFrame moved = std::move(frame);
    // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): what is tested
    EXPECT_TRUE(frame.payload().empty()) << "it is the other one's to fill, which may have been sent";
    EXPECT_EQ(error_of([&] { frame.post(); }).code(), ErrorCode::invalid);
    EXPECT_EQ(moved.payload().size(), 8U);
    moved.post();
    EXPECT_EQ(count(), 2);
}

TEST_P(BegunFrames, WhoseTimeIsOverAreNotPosted) {
    ASSERT_EQ(count(), 1);
    const Peer limited = peer().limited(within(std::chrono::milliseconds(500)));
    for (const bool post : {true, false}) {
        CallFrame frame = limited.begin(entry_, 8);
        std::this_thread::sleep_for(std::chrono::milliseconds(600));
        const Error error = error_of([&] {
            if (post)
                frame.post();
            else
                (void)frame.call().get();
        });
        EXPECT_EQ(error.code(), ErrorCode::timed_out) << error.message();
        EXPECT_FALSE(state().sends.has_open_frame()) << "nobody can call there any more";
    }
    const Peer over = peer().limited(within(std::chrono::milliseconds(0)));
    EXPECT_EQ(error_of([&] { (void)over.begin(entry_, 8); }).code(), ErrorCode::timed_out);
    Batch batch = over.batch(entry_, 8);
    (void)batch.add();
    EXPECT_EQ(error_of([&] { batch.post(); }).code(), ErrorCode::timed_out);
    const Error error = error_of([&] { (void)over.load(Package::open(package("shelf.c", {"--interface"}))); });
    EXPECT_NE(error.message().find("was over before it was sent"), std::string::npos) << error.message();
    EXPECT_EQ(count(), 2) << "one of them ran";
}

// The thread that has begun a frame can call nothing else there; it has no frame any more.
TEST(BegunFrame, AThreadCallsAgainAfterAPostThatFailed) {
    (void)scratch();
    NodeProcess server;
    Node node({.own_thread = false, .log = "off"});
    const Peer peer = node.connect(server.address());
    const Entry entry = Package::open(package("basics.c")).entry("count");
    (void)peer.call(entry).get();
    CallFrame frame = peer.begin(entry, 8);
    server.kill_now();
    ASSERT_TRUE(soon([&] {
        return !detail::Inside::core(peer)->first_engine().peers().linked(*detail::Inside::state(peer));
    })) << "nobody notices";
    EXPECT_EQ(error_of([&] { frame.post(); }).code(), ErrorCode::disconnected);
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(error_of([&] { (void)peer.limited(within(std::chrono::seconds(10))).call(entry).get(); }).code(),
                  ErrorCode::disconnected);
}

}  // namespace
}  // namespace rove::test
