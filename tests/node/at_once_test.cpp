// Results that a thread takes out of the mailbox by itself, because it waits for them when they come: the same rules hold for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "bytes.hpp"
#include "hand_made.hpp"
#include "process.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using fabric::Traffic;
using wire::Kind;

class AtOnce : public OnFabrics {
protected:
    // While the server is driven.
    template <typename Work>
    auto polled(const Work& work) {
        const std::jthread drives([this](const std::stop_token& stop) {
            while (!stop.stop_requested()) (void)server_->poll();
        });
        return work();
    }
    void SetUp() override {
        NodeOptions by_hand = options(true);
        by_hand.own_thread = false;
        server_ = std::make_unique<Node>(started(by_hand));
        NodeOptions joining = options(true);
        joining.join = server_->address();
        node_ = std::make_unique<Node>(started(joining));
        peer_ = std::make_unique<Peer>(node_->connect(server_->address()));
        back_ = detail::Inside::state(*peer_)->my_id();
        EXPECT_EQ(text(polled([&] { return begin("warm").get(); })), "warm");
    }
    [[nodiscard]] RawCall begin(std::string_view words) const {
        return peer().call(package_.entry("echo"), bytes(words));
    }
    // What the server finds in its mailbox, and leaves there.
    [[nodiscard]] wire::FrameHeader call_that_came() const {
        const Peer to_client = client();
        Engine& engine = detail::Inside::core(to_client)->first_engine();
        wire::Frame frame;
        EXPECT_TRUE(soon([&] {
            (void)EngineView::progress(engine);
            const Hold hold(engine.lock());
            return detail::Inside::state(to_client)->link()->next(Traffic::calls, frame);
        }));
        return frame.header;
    }
    void reply_with(wire::FrameHeader header) const {
        header.kind = Kind::reply;
        header.flags = 0;
        header.node = back_;
        write_frame(client(), Traffic::prompt, header, {}, bytes("forged"));
    }
    [[nodiscard]] Peer client() const { return server_->connect(node_->address()); }

    Package package_ = Package::open(package("basics.c"));
    NodeId back_ = kNoNode;
};
ROVE_ON_FABRICS(AtOnce);

TEST_P(AtOnce, AReplyToAnotherCallIsNotTaken) {
    std::array<std::byte, 16> into{};
    for (const bool other_slot : {false, true}) {
        RawCall call = begin("hello");
        wire::FrameHeader header = call_that_came();
        if (other_slot)
            header.call += 1;
        else
            header.generation -= 1;
        reply_with(header);
        EXPECT_EQ(polled([&] { return call.get_into(into); }), 5U) << other_slot;
        EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(into.data()), 5), "hello");
    }
}

TEST_P(AtOnce, ACallThatHasItsResultIsInFlightNoLonger) {
    std::array<std::byte, 16> into{};
    for (int i = 0; i < 100; ++i) {
        RawCall call = begin("hello");
        (void)server_->poll();
        ASSERT_EQ(polled([&] { return call.get_into(into); }), 5U);
    }
    Engine& engine = detail::Inside::core(peer())->first_engine();
    const Hold hold(engine.lock());
    EXPECT_EQ(engine.own_calls().table().used(), 0U);
}

TEST_P(AtOnce, AResultThatHasNoRoomIsNotWritten) {
    std::array<std::byte, 64> into{};
    into.fill(std::byte{0xEE});
    RawCall call = begin("more than eight bytes");
    EXPECT_TRUE(soon([&] {
        (void)server_->poll();
        if (call.done()) return true;  // the node's own thread was quicker
        const Hold hold(detail::Inside::core(peer())->first_engine().lock());
        return detail::Inside::state(peer())->link()->pending();
    }));
    (void)error_of([&] { (void)call.get_into(std::span(into).first(8)); });
    EXPECT_TRUE(
        std::ranges::all_of(std::span(into).subspan(8), [](std::byte byte) { return byte == std::byte{0xEE}; }));
}

}  // namespace
}  // namespace rove::test
