// What both ends of a meeting have: the time limit of a connection, the link that is not a peer's yet, hanging up, and the keys of a stream.
#include "control/both_ends.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "meeting_parts.hpp"

namespace rove::test {
namespace {

using control::ChosenEngine;
using control::PendingLink;

// Notes what a pending link asks of the engines.
class NotedEngines final : public control::Engines {
public:
    NotedEngines(OneEngine& engine, ChosenEngine chosen) : engine_(engine), chosen_(chosen) {}
    ChosenEngine choose(const PeerState* /*old*/, NodeId /*member*/) override {
        ++chosen;
        return chosen_;
    }
    void release(const ChosenEngine& engine) noexcept override {
        EXPECT_EQ(engine, chosen_);
        ++released;
    }
    Result<Peers::Adopted> adopt(const ChosenEngine& by, Meeting meeting, std::unique_ptr<fabric::Link>& link,
                                 std::shared_ptr<PeerState> old) override {
        EXPECT_EQ(by, chosen_);
        return engine_.adopt(by, std::move(meeting), link, std::move(old));
    }
    [[nodiscard]] bool linked(const PeerState& peer) const override { return engine_.linked(peer); }
    void lose(const std::shared_ptr<PeerState>& peer, std::uint64_t meeting, Error why) override {
        engine_.lose(peer, meeting, std::move(why));
    }
    void member_expected(NodeId /*member*/, const AbsentMembers::Process& /*process*/,
                         const std::string& /*why*/) override {}
    void member_gone(NodeId /*member*/, const std::string& /*why*/) override {}

    int chosen = 0, released = 0;

private:
    OneEngine& engine_;
    const ChosenEngine chosen_;
};

class BothEndsTest : public MeetingParts {
protected:
    // A link that is opened and is to be connected to nothing.
    void open(PendingLink& link) {
        link.choose_engine(nullptr, kNoNode);
        value_or_throw(link.open());
        EXPECT_TRUE(link);
    }

    NotedEngines noted_{engines_, {.fabric = &fabric_, .peers = &peers_}};
};

TEST_F(BothEndsTest, ALinkThatNoEngineWasChosenForCountsNowhere) {
    {
        const PendingLink link(noted_);
    }
    EXPECT_EQ(noted_.released, 0);
}

TEST_F(BothEndsTest, ALinkThatNobodyAdoptsIsDroppedAndItsEngineCountsItUntilThen) {
    {
        PendingLink link(noted_);
        open(link);
        EXPECT_EQ(links(), 1U);
        EXPECT_EQ(noted_.released, 0);
    }
    EXPECT_EQ(links(), 0U);
    EXPECT_EQ(noted_.chosen, 1);
    EXPECT_EQ(noted_.released, 1);
}

TEST_F(BothEndsTest, ALinkThatIsDroppedStillCountsUntilItsMeetingEnds) {
    {
        PendingLink link(noted_);
        open(link);
        link.drop();
        EXPECT_FALSE(link);
        EXPECT_EQ(links(), 0U);
        EXPECT_EQ(noted_.released, 0);
    }
    EXPECT_EQ(noted_.released, 1);
}

TEST_F(BothEndsTest, ALinkThatIsAdoptedStaysWithItsPeer) {
    begin_as(3);
    {
        PendingLink link(noted_);
        open(link);
        const Meeting meeting{
            .peer = {.id = 1, .my_id = neighbours_.routes.id(), .member = true, .address = address_of(1)},
            .resident = {}};
        EXPECT_TRUE(link.adopt(meeting, nullptr));
        EXPECT_FALSE(link);
    }
    EXPECT_EQ(links(), 1U);
    EXPECT_EQ(peers(), 1U);
    EXPECT_EQ(noted_.released, 1);
}

TEST_F(BothEndsTest, AConnectionIsClosedWhenItsTimeIsOver) {
    const auto [here, there] = connection();
    control::ChannelDeadline deadline(thread_.io(), here);
    deadline.set(std::chrono::hours(1));
    deadline.set(std::chrono::milliseconds(1));  // replaces the first one
    EXPECT_FALSE(deadline.passed());
    EXPECT_TRUE(run_until([&] { return deadline.passed(); }));
    EXPECT_FALSE(here->is_open());
}

TEST_F(BothEndsTest, ALimitThatIsLiftedClosesNothing) {
    const auto [here, there] = connection();
    {
        control::ChannelDeadline deadline(thread_.io(), here);
        deadline.set(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    thread_.io().poll();
    EXPECT_TRUE(here->is_open());
}

TEST_F(BothEndsTest, AnyThreadHangsUpAndTheControlThreadSendsTheReason) {
    const auto [here, there] = connection();
    thread_.gate()->open(thread_.io());
    const auto hang_up = control::hang_up_of(thread_.gate(), here);
    std::thread([&hang_up] { hang_up(Error(ErrorCode::overloaded, "it takes no replies")); }).join();
    EXPECT_TRUE(here->is_open()) << "another thread than the control thread has closed it";
    EXPECT_TRUE(run_until([&channel = here] { return !channel->is_open(); }));
    const Result<ByteBuffer> message = run(there->receive(Goodbye::kBytesMax));
    ASSERT_TRUE(message);
    const Goodbye goodbye = value_or_throw(wire::control::decode<Goodbye>(*message));
    EXPECT_EQ(goodbye.reason, Goodbye::Reason::cut);
    EXPECT_EQ(goodbye.code, ErrorCode::overloaded);
    EXPECT_EQ(goodbye.text, "it takes no replies");
}

TEST_F(BothEndsTest, HangingUpKeepsNoConnection) {
    std::function<void(const Error&)> hang_up;
    {
        auto [here, there] = connection();
        thread_.gate()->open(thread_.io());
        hang_up = control::hang_up_of(thread_.gate(), here);
    }
    EXPECT_TRUE(open_.empty());
    hang_up(Error(ErrorCode::overloaded, "it takes no replies"));
    thread_.io().poll();
}

TEST(StreamKeys, WhatOneEndSendsByTheOtherReceivesBy) {
    wire::control::LaneSecret secret;
    for (std::size_t i = 0; i < secret.bytes.size(); ++i) secret.bytes[i] = static_cast<std::uint8_t>(i);
    const fabric::StreamKeys node = control::stream_keys(secret, true), opener = control::stream_keys(secret, false);
    EXPECT_EQ(node.outgoing, opener.incoming);
    EXPECT_EQ(node.incoming, opener.outgoing);
    EXPECT_NE(node.incoming, node.outgoing);
}

}  // namespace
}  // namespace rove::test
