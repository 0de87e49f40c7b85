// A call that was sent on is answered although the link to its caller's node was cut before.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../api/nodes.hpp"
#include "api/access.hpp"
#include "engine/here.hpp"
#include "engine_view.hpp"
#include "hand_made.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;

// Three nodes: the first calls the second, which sends the call on to the third.

constexpr auto kPatience = 30s;

std::atomic<bool> arrived = false, go_on = false, ends = false;
std::function<void()> before_its_end;
std::atomic<unsigned> runs = 0;
void count_run() {
    ++runs;
}
// As rove_forward does, with the function's own id.
void pass_on(Here& here, std::uint32_t to) {
    if (here.raw()->node().id() != to) {
        EXPECT_EQ(rove_forward(here.raw(), to, &to, sizeof to), 0);
        return;
    }
    arrived = true;
    while (!go_on) std::this_thread::sleep_for(1ms);
    if (before_its_end) before_its_end();
    ends = true;
}

class Healing : public OnFabrics {
protected:
    void SetUp() override {
        before_its_end = nullptr;
        const auto joins = [this](const std::string& address) {
            NodeOptions joining = options(true);
            joining.join = address;
            return std::make_unique<Node>(started(joining));
        };
        first_ = std::make_unique<Node>(started(options(true)));
        second_ = joins(first_->address());
        third_ = joins(first_->address());
        go_on = true;
        first_->connect(third_->address()).sync(fn<pass_on>, third_->id());  // it knows the function from here on
        arrived = go_on = ends = false;
    }
    void TearDown() override {
        go_on = true;
        third_.reset();
        second_.reset();
        first_.reset();
    }
    [[nodiscard]] static std::shared_ptr<PeerState> state(Node& of, const Node& to) {
        return detail::Inside::state(of.connect(to.address()));
    }
    std::unique_ptr<Node> first_, second_, third_;
};
ROVE_ON_FABRICS(Healing);

// Not on chaos, which gives credit late: there more may be lost.
class HealingOnTime : public Healing {};
INSTANTIATE_TEST_SUITE_P(Fabrics, HealingOnTime, testing::Values(kLoopback, kShm, kTcp), fabric_name);
// Takes 20 s.
class HealingInSeconds : public Healing {};
ROVE_ON_FABRICS_WITH_ONE_SEED(HealingInSeconds);

TEST_P(Healing, ForwardedCallsAreAnsweredWhenTheirCallersNodeIsMetAgain) {
    const Peer second = first_->connect(second_->address());
    const Peer to_first = third_->connect(first_->address());
    const auto core = detail::Inside::core(to_first);
    const std::shared_ptr<PeerState> cut = detail::Inside::state(to_first);
    Call<void> call = second.async(fn<pass_on>, third_->id());
    ASSERT_TRUE(soon([] { return arrived.load(); }));
    const std::uint64_t before = cut->meeting();
    before_its_end = [&] {
        core->first_engine().peers().lose(cut, before, Error(ErrorCode::disconnected, "the test cut it"));
    };
    go_on = true;  // its reply finds no link
    ASSERT_TRUE(call.wait_for(kPatience)) << "nobody answers";
    call.get();
    EXPECT_TRUE(soon([&] { return cut->meeting() != before && core->first_engine().peers().linked(*cut); }));
    EXPECT_EQ(EngineView::replies_kept(core->first_engine()), 0U);
}

// The answer has been written, and the link goes before it is read: it counts where it has arrived, else it is sent again.
TEST_P(Healing, AnswersThatWereWrittenBeforeTheCutAreNotLost) {
    for (int round = 0; round < 3; ++round) {
        arrived = go_on = ends = false;
        NodeOptions lone = options(true);
        lone.join = second_->address();
        lone.own_thread = false;
        Node caller(started(lone));
        const Peer second = caller.connect(second_->address()), third = caller.connect(third_->address());
        const Peer back = third_->connect(caller.address());
        Call<void> call = second.async(fn<pass_on>, third_->id());
        for (int i = 0; i < 3; ++i) (void)caller.poll();  // it leaves
        ASSERT_TRUE(soon([] { return arrived.load(); }));
        const auto written = back.counters().frames_sent;
        go_on = true;
        ASSERT_TRUE(soon([&] { return back.counters().frames_sent > written; }));
        const auto core = detail::Inside::core(third);
        const std::shared_ptr<PeerState> cut = detail::Inside::state(third);
        core->first_engine().peers().lose(cut, cut->meeting(), Error(ErrorCode::disconnected, "the test cut it"));
        third.sync(fn<pass_on>, third_->id());  // meets it again
        ASSERT_TRUE(call.wait_for(kPatience)) << "nobody answers";
        call.get();
    }
}

// A client's answers are kept by nobody, so those that have arrived are all that it gets: more of them than it reads at a time.
class ClientsLinkEnd : public OnFabrics {};
// Elsewhere an answer that is written may not have arrived yet.
ROVE_ON_DIRECT_FABRICS(ClientsLinkEnd);

TEST_P(ClientsLinkEnd, AnswersThatHaveArrivedCount) {
    NodeOptions lone = options(false);
    lone.own_thread = false;
    Node caller(started(lone));
    const Peer server = caller.connect(peer().address());
    server.sync(fn<nothing>);
    const std::shared_ptr<PeerState> cut = detail::Inside::state(server);
    runs = 0;
    std::vector<Call<void>> calls;
    for (unsigned i = 0; i < 3 * kBatchMax; ++i) calls.push_back(server.async(fn<count_run>));
    const Call<void> behind = server.async(fn<count_run>);
    ASSERT_TRUE(soon([] { return runs == 3 * kBatchMax + 1; }));  // so those before it have been answered
    detail::Inside::core(server)->first_engine().peers().lose(cut, cut->meeting(),
                                                              Error(ErrorCode::disconnected, "the test cut it"));
    for (auto& call : calls) {
        ASSERT_TRUE(call.wait_for(kPatience));
        EXPECT_NO_THROW(call.get());
    }
}

// It can write where they lie until the link goes: a part that does not say which one it is would be read beyond its end.
TEST_P(Healing, WhatAPeerMadeOfItsAnswersIsNotSentAgain) {
    NodeOptions lone = options(true);
    lone.join = second_->address();
    lone.own_thread = false;
    Node caller(started(lone));
    const Peer third = caller.connect(third_->address());
    const Peer back = third_->connect(caller.address());
    go_on = true;
    third.sync(fn<pass_on>, third_->id());
    const auto there = detail::Inside::core(back);
    write_frame(back, fabric::Traffic::prompt, {.kind = wire::Kind::part, .call = 1}, {});
    write_frame(back, fabric::Traffic::prompt, {.kind = wire::Kind::reply, .flags = wire::kMeant, .call = 1}, {});
    const std::shared_ptr<PeerState> cut = detail::Inside::state(back);
    const auto core = detail::Inside::core(third);
    const std::shared_ptr<PeerState> here = detail::Inside::state(third);
    const std::uint64_t before = here->meeting();
    there->first_engine().peers().lose(cut, cut->meeting(), Error(ErrorCode::disconnected, "the test cut it"));
    ASSERT_TRUE(soon([&] {  // it may have met it again in the same turn
        (void)caller.poll();
        return !core->first_engine().peers().linked(*here) || here->meeting() != before;
    }));
    third.sync(fn<pass_on>, third_->id());  // meets it again, if it has not
    const std::uint64_t meeting = here->meeting();
    for (int i = 0; i < 20; ++i) third.sync(fn<pass_on>, third_->id());
    EXPECT_EQ(here->meeting(), meeting) << "it was sent what no node sends";
}

// Calls that waited for room when they were sent on, and have been taken since: the node that has them answers them after the cut.
std::mutex kept_mutex;
std::vector<rove_here*> kept;
std::atomic<std::size_t> passed_on{0};
void keep_there(Here& here, std::uint32_t to, const std::string& more) {
    if (here.raw()->node().id() != to) {
        std::vector<std::byte> arguments;
        detail::travel::Output out(arguments);
        detail::travel::write(out, to);
        detail::travel::write(out, more);
        EXPECT_EQ(rove_forward(here.raw(), to, arguments.data(), arguments.size()), 0);
        ++passed_on;
        return;
    }
    const std::lock_guard lock(kept_mutex);
    kept.push_back(rove_keep(here.raw()));
}
TEST_P(HealingOnTime, CallsThatHadWaitedForRoomAreAnsweredToo) {
    NodeOptions lone = options(true);
    lone.join = second_->address();
    lone.own_thread = false;
    Node last(started(lone));
    const Peer second = first_->connect(second_->address());
    const Peer from_second = second_->connect(last.address());
    const std::string large(16 * 1024, 'x');
    constexpr std::size_t kCalls = 200;  // the mailbox holds some 60 of them
    passed_on = 0;
    kept.clear();
    std::vector<Call<void>> calls;
    for (std::size_t i = 0; i < kCalls; ++i) calls.push_back(second.async(fn<keep_there>, last.id(), large));
    ASSERT_TRUE(soon([&] { return passed_on == calls.size(); }));
    ASSERT_TRUE(soon([&] {
        (void)last.poll();
        const std::lock_guard lock(kept_mutex);
        return kept.size() == calls.size();
    }));
    const auto core = detail::Inside::core(from_second);
    const std::shared_ptr<PeerState> cut = detail::Inside::state(from_second);
    const std::uint64_t before = cut->meeting();
    core->first_engine().peers().lose(cut, before, Error(ErrorCode::disconnected, "the test cut it"));
    ASSERT_TRUE(soon([&] {  // it is met again, and what could not be answered any more has failed
        (void)last.poll();
        return cut->meeting() != before && core->first_engine().peers().linked(*cut);
    }));
    for (rove_here* const each : kept) {
        (void)rove_reply(each, nullptr, 0);
        rove_release(each);
    }
    kept.clear();
    std::size_t lost = 0;
    for (Call<void>& call : calls) {
        ASSERT_TRUE(soon([&] {
            (void)last.poll();
            return call.done();
        })) << "nobody answers";
        try {
            call.get();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::disconnected) << error.what();
            ++lost;
        }
    }
    EXPECT_LT(lost, kCalls / 8)
        << "only the last ones may be, of which the sender has not been told that they were taken";
}

// Asks another node, by its id, from a function.
void ask(Here& here, std::uint32_t node) {
    here.peer(node).sync(fn<pass_on>, node);
}
// Gives the message that rove_forward's caller would log.
std::string pass_on_or_say_why(Here& here, std::uint32_t to) {
    const Onward onward{.node = to, .function = FunctionId{}, .payload = {}, .context = {.wants_reply = false}};
    const Status sent = here.raw()->engine->caller().send_on(onward);
    return sent ? "" : std::string(to_string(sent.error().code())) + ": " + sent.error().message();
}

TEST_P(Healing, AMemberThatIsNotThereIsDisconnectedAndNamed) {
    const Peer second = first_->connect(second_->address());
    const NodeId gone = third_->id();
    const std::string address = third_->address();
    go_on = true;
    second.sync(fn<ask>, gone);
    const auto core = detail::Inside::core(second_->connect(first_->address()));
    const auto state_there = detail::Inside::state(second_->connect(address));
    third_.reset();
    ASSERT_TRUE(soon([&] { return !core->first_engine().peers().linked(*state_there); }));
    std::string said;
    EXPECT_TRUE(soon([&] {  // until it has read the last words, nobody answers there
        const Error error = error_of([&] { second.sync(fn<ask>, gone); });
        said = error.message();
        EXPECT_EQ(error.code(), ErrorCode::disconnected) << said;
        EXPECT_NE(said.find(address), std::string::npos) << said;
        return said.find("it left") != std::string::npos;
    })) << said;
    const std::string why = second.sync(fn<pass_on_or_say_why>, gone);
    EXPECT_EQ(why.find("disconnected: "), 0U) << why;
    EXPECT_NE(why.find(address), std::string::npos) << why;
    EXPECT_NE(why.find("it left"), std::string::npos) << why;
    // One that nobody has ever been.
    EXPECT_EQ(second.sync(fn<pass_on_or_say_why>, 77U).find("invalid: there is no node 77"), 0U);
}

// The answer to a call that came in the name of a node which this one has never heard of goes to a member that should have.
TEST_P(Healing, AnswersForAnUnknownNodeGoToWhoHasMetIt) {
    NodeOptions by_hand = options(true);
    by_hand.join = first_->address();
    by_hand.own_thread = false;
    Node fourth(started(by_hand));
    const Peer to_third = fourth.connect(third_->address());
    const Peer up = third_->connect(first_->address());
    const auto core = detail::Inside::core(up);
    ASSERT_TRUE(soon([&] { return core->node_count() == 4; }));
    core->ids().set_node_count(8);
    const auto before = up.counters().frames_sent;
    write_frame(to_third, fabric::Traffic::calls, {.kind = wire::Kind::ping, .generation = 1, .node = 6, .call = 1},
                {});
    EXPECT_TRUE(soon([&] {
        (void)fourth.poll();
        return up.counters().frames_sent > before;
    })) << "the node with the lowest id is told";
    go_on = true;
    first_->connect(third_->address()).sync(fn<pass_on>, third_->id());  // the two go on
}

// Its process has gone, another one takes its place, and calls through others before all have heard of it.
TEST_P(Healing, AnswersAreKeptForTheProcessThatTakesTheirCallersPlace) {
    NodeOptions lone = options(true);
    lone.join = second_->address();
    auto fourth = std::make_unique<Node>(started(lone));
    const NodeId id = fourth->id();
    lone.listen = fourth->address();
    const Peer to_fourth = third_->connect(lone.listen);
    const auto core = detail::Inside::core(to_fourth);
    fourth.reset();
    ASSERT_TRUE(soon([&] { return !core->first_engine().peers().linked(*detail::Inside::state(to_fourth)); }));
    // As the second sends on what the new one calls.
    write_frame(second_->connect(third_->address()), fabric::Traffic::calls,
                {.kind = wire::Kind::ping, .generation = 1, .node = id, .call = 1}, {});
    EXPECT_TRUE(soon([&] { return EngineView::replies_kept(core->first_engine()) > 0; })) << "the answer is lost";
    Node fifth(started(lone));
    ASSERT_EQ(fifth.id(), id);
    const Peer to_fifth = third_->connect(fifth.address());
    EXPECT_EQ(EngineView::replies_kept(core->first_engine()), 0U);
    EXPECT_GT(to_fifth.counters().frames_sent, 0U) << "it was dropped";
}

TEST_P(HealingInSeconds, NothingIsKeptForLongForAMemberThatIsGone) {
    const Peer to_first = third_->connect(first_->address());
    const auto core = detail::Inside::core(to_first);
    const Peer second = first_->connect(second_->address());
    Call<void> call = second.async(fn<pass_on>, third_->id());
    ASSERT_TRUE(soon([] { return arrived.load(); }));
    call.cancel();
    first_.reset();
    ASSERT_TRUE(soon([&] { return !core->first_engine().peers().linked(*detail::Inside::state(to_first)); }));
    go_on = true;
    ASSERT_TRUE(soon([] { return ends.load(); }));
    second_->connect(third_->address()).sync(fn<pass_on>, third_->id());
    EXPECT_TRUE(soon([&] { return EngineView::replies_kept(core->first_engine()) == 0; }, 2 * kKeptForNextMax));
}

}  // namespace
}  // namespace rove::test
