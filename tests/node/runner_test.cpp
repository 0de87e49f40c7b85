// Functions and callbacks while they run, and places for long ones: a Runner by itself.
#include "lead/runner.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <thread>
#include <vector>

#include "engine_view.hpp"
#include "neighbours.hpp"
#include "running.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;
using fabric::Traffic;
using wire::Kind;

using RunnerTest = Running;

// ---- one run

TEST_F(RunnerTest, AFunctionIsInThisThreadWhileItRuns) {
    rove::Run one{.function = &function("one")};
    run(one, [&] {
        const Hold again(lead_.mutex());
        EXPECT_EQ(runner_.leading(), &one);
        EXPECT_EQ(runner_.busy(), 1U);
        EXPECT_TRUE(runner_.is_in_mine());
        EXPECT_TRUE(runner_.runs_as_leader());
        EXPECT_EQ(runner_.depth(), 1U);
        EXPECT_EQ(ThreadRuns::innermost().run, &one);
        EXPECT_TRUE(ThreadRuns::is_in_function());
        EXPECT_TRUE(ThreadRuns::is_in(one));
        EXPECT_FALSE(ThreadRuns::is_in(rove::Run{}));
        EXPECT_FALSE(is_among_long(one));
        EXPECT_EQ(runner_.places_taken(), 0U);
        std::thread([&] {
            EXPECT_FALSE(runner_.is_in_mine());
            EXPECT_EQ(ThreadRuns::innermost().run, nullptr);
        }).join();
    });
    const Hold hold(lead_.mutex());
    EXPECT_EQ(runner_.leading(), nullptr);
    EXPECT_EQ(runner_.busy(), 0U);
    EXPECT_FALSE(runner_.is_in_mine());
    EXPECT_EQ(runner_.depth(), 0U);
    EXPECT_EQ(ThreadRuns::innermost().run, nullptr);
    EXPECT_TRUE(one.function->pace.is_short());
}

// To those who look, each is a run of its own, though they share a Run.
TEST_F(RunnerTest, RunsThatFollowOneAnotherBeginAnew) {
    rove::Run shared{.function = &function("shared")};
    Hold hold(lead_.mutex());
    Lead::Turn turn{.lock = hold.lock(), .baton = {.own = false}};
    lead_.take(turn);
    runner_.begin(shared, turn);
    std::vector<std::uint64_t> begun;
    const auto code = [&] {
        const Hold again(lead_.mutex());
        EXPECT_EQ(runner_.leading(), &shared);
        EXPECT_FALSE(shared.noticed);
        EXPECT_FALSE(shared.payload_read);
        begun.push_back(EngineView::runs_begun(lead_));
        shared.noticed = Clock::now();
        shared.payload_read = true;
    };
    runner_.outside(shared, turn, code, [&]() REQUIRES(lock_of<EngineLock>) { return begun.size() < 3; });
    EXPECT_EQ(begun, (std::vector<std::uint64_t>{1, 2, 3})) << "whoever keeps watch counts them";
    EXPECT_EQ(runner_.busy(), 0U);
    lead_.give(turn);
}

TEST_F(RunnerTest, NoRunFollowsOneThatWasSetAside) {
    rove::Run shared{.function = &function("shared")};
    unsigned ran = 0;
    Hold hold(lead_.mutex());
    Lead::Turn turn{.lock = hold.lock(), .baton = {.own = false}};
    lead_.take(turn);
    runner_.begin(shared, turn);
    const auto code = [&] {
        const Hold again(lead_.mutex());
        ++ran;
        EXPECT_TRUE(runner_.step_aside());
        lead_.leave_to_others();
    };
    runner_.outside(shared, turn, code, [&] {
        ADD_FAILURE() << "another thread has the mailbox";
        return ran < 3;
    });
    EXPECT_EQ(ran, 1U);
    EXPECT_TRUE(shared.handed_over);
    EXPECT_EQ(runner_.busy(), 0U);
}

// It has no code and no frame to be kept.
TEST_F(RunnerTest, ACallbackIsNoFunction) {
    rove::Run callback;
    run(callback, [&] {
        EXPECT_TRUE(runner_.is_in_mine());
        EXPECT_FALSE(ThreadRuns::is_in_function());
        const Hold again(lead_.mutex());
        EXPECT_TRUE(runner_.step_aside());
        EXPECT_TRUE(is_among_long(callback));
        EXPECT_FALSE(callback.entered);
    });
    const Hold hold(lead_.mutex());
    EXPECT_EQ(runner_.busy(), 0U);
    EXPECT_FALSE(is_among_long(callback));
}

TEST_F(RunnerTest, WhatRunsInANodeIsNotInAnother) {
    IdleLead other;
    rove::Run callback;
    run(callback, [&] {
        EXPECT_FALSE(other.runner.is_in_mine());
        EXPECT_EQ(other.runner.depth(), 0U);
        EXPECT_TRUE(ThreadRuns::is_in_any());
    });
}

TEST_F(RunnerTest, WhoseCodeRunsHasTheStandardArithmeticAndTheThreadItsOwnAgain) {
    rove::Run callback;
    std::fesetround(FE_UPWARD);
    run(callback, [&] {
        Runner::call_out(callback, [&] {
            EXPECT_EQ(std::fegetround(), FE_TONEAREST);
            std::fesetround(FE_DOWNWARD);
            EXPECT_TRUE(wait_for([](Lead::Turn&) { EXPECT_EQ(std::fegetround(), FE_TONEAREST); }));
            EXPECT_EQ(std::fegetround(), FE_DOWNWARD) << "it has waited in between";
        });
        EXPECT_EQ(std::fegetround(), FE_UPWARD);
    });
    std::fesetround(FE_TONEAREST);
}

TEST_F(RunnerTest, ATurnAmongLargePayloadsIsBeneathWhileSomethingRunsOnTop) {
    LargeQueue turns;
    LargeQueue::Place mine(turns);
    mine.begin();
    const LargeQueue::Place next(turns);
    EXPECT_FALSE(next.is_next());
    rove::Run callback;
    Hold hold(lead_.mutex());
    Lead::Turn turn{.lock = hold.lock(), .baton = {.own = false}, .large_beneath = &mine};
    lead_.take(turn);
    run_in(turn, callback, [&] { EXPECT_TRUE(next.is_next()) << "it may pass the one beneath"; });
    EXPECT_FALSE(next.is_next());
    lead_.give(turn);
}

// ---- runs beside the leader

TEST_F(RunnerTest, WhatStepsAsideIsALongRunUntilItReturns) {
    rove::Run one{.function = &function("one")};
    run(one, [&] {
        const Hold again(lead_.mutex());
        EXPECT_TRUE(runner_.step_aside());
        EXPECT_FALSE(runner_.step_aside()) << "it leads no more";
        EXPECT_TRUE(one.handed_over);
        EXPECT_TRUE(one.entered) << "its code may be used for as long";
        EXPECT_TRUE(is_among_long(one));
        EXPECT_EQ(runner_.leading(), nullptr);
        EXPECT_FALSE(runner_.runs_as_leader());
        EXPECT_FALSE(lead_.is_led());
        EXPECT_EQ(runner_.busy(), 1U);
        EXPECT_EQ(runner_.places_taken(), 1U);
        EXPECT_FALSE(runner_.has_no_place()) << "there are two";
    });
    const Hold hold(lead_.mutex());
    EXPECT_FALSE(is_among_long(one));
    EXPECT_FALSE(one.entered);
    EXPECT_EQ(runner_.busy(), 0U);
    EXPECT_EQ(runner_.places_taken(), 0U);
    EXPECT_FALSE(one.function->pace.is_long()) << "it was none";
    EXPECT_FALSE(runner_.step_aside()) << "this thread is in nothing";
}

TEST_F(RunnerTest, WhatIsTakenAwayIsKnownToRunLong) {
    rove::Run one{.function = &function("one")};
    const TimePoint before = Clock::now();
    run(one, [&] {
        const Hold again(lead_.mutex());
        runner_.take_away();
        lead_.hand_over();
        EXPECT_TRUE(one.handed_over);
        EXPECT_TRUE(one.function->pace.is_long());
        EXPECT_GE(one.begun, before - code::Pace::kShort);
        EXPECT_LE(one.begun, Clock::now() - code::Pace::kShort) << "for as long it was watched";
    });
    EXPECT_TRUE(one.function->pace.is_long());
}

TEST_F(RunnerTest, AFrameIsHeldUntilItsFunctionReturns) {
    Neighbours neighbours;
    const PeerState& peer = neighbours.add(2);
    const ByteBuffer payload(wire::kPayloadBytesMax);
    for (const bool is_read : {false, true}) {
        const std::uint64_t before = neighbours.lines_given_back_to(peer, Traffic::calls);
        for (int i = 0; i < 2; ++i)
            neighbours.send_from(peer, Traffic::calls, {.kind = Kind::call, .node = 2}, payload);
        wire::Frame frame;
        ASSERT_TRUE(peer.link()->next(Traffic::calls, frame));
        rove::Run one{.function = &function("one"), .link = peer.link().get(), .from = &peer};
        one.payload_read = is_read;
        run(one, [&] {
            const Hold again(lead_.mutex());
            EXPECT_TRUE(runner_.step_aside());
            EXPECT_EQ(one.holds != nullptr, !is_read);
            ASSERT_TRUE(peer.link()->next(Traffic::calls, frame)) << "the next one is there for whoever leads";
            peer.link()->release(Traffic::calls);
            EXPECT_EQ(neighbours.lines_given_back_to(peer, Traffic::calls) > before, is_read);
        });
        EXPECT_GT(neighbours.lines_given_back_to(peer, Traffic::calls), before);
        EXPECT_EQ(one.holds, nullptr);
    }
}

TEST_F(RunnerTest, WhatIsKnownToRunLongLeavesTheLeadToAFollower) {
    code::Function& known = function("known");
    known.pace.seen_long();
    rove::Run alone{.function = &known};
    run(alone, [&] { EXPECT_FALSE(alone.handed_over) << "nobody else could lead"; });
    known.pace.seen_long();
    idle_.start_threads(2);
    have_led([&](Lead::Turn& turn) {
        rove::Run one{.function = &known};
        run_in(turn, one, [&] {
            EXPECT_TRUE(one.handed_over);
            EXPECT_TRUE(soon([&] { return idle_.under_lock([&] { return lead_.is_led(); }); }));
        });
        EXPECT_TRUE(lead_.lost(turn));
    });
}

TEST_F(RunnerTest, AFunctionThatSaysThatItIsLongLeavesTheLeadToAFollower) {
    rove::Run alone{.function = &function("one")};
    run(alone, [&] {
        const Hold again(lead_.mutex());
        runner_.hand_over_here();
        EXPECT_FALSE(alone.handed_over) << "nobody else could lead";
    });
    idle_.start_threads(2);
    have_led([&](Lead::Turn& turn) {
        rove::Run one{.function = &function("two")};
        run_in(turn, one, [&] {
            {
                const Hold again(lead_.mutex());
                runner_.hand_over_here();
                EXPECT_TRUE(one.handed_over);
                runner_.hand_over_here();
            }
            EXPECT_TRUE(soon([&] { return idle_.under_lock([&] { return lead_.is_led(); }); }));
        });
    });
}

TEST_F(RunnerTest, WithOneThreadNothingIsHandedToAFollower) {
    IdleLead idle(1, cache_);
    idle.start_threads(1);
    rove::Run one{.function = &function("one")};
    one.function->pace.seen_long();
    Hold hold(idle.lead.mutex());
    Lead::Turn turn{.lock = hold.lock(), .baton = {.own = false}};
    idle.runner.begin(one, turn);
    EXPECT_FALSE(one.handed_over);
    EXPECT_EQ(idle.runner.leading(), &one);
}

TEST_F(RunnerTest, OneThatNeverReturnsIsGivenUp) {
    rove::Run one{.function = &function("one")};
    Hold hold(lead_.mutex());
    Lead::Turn turn{.lock = hold.lock(), .baton = {.own = false}};
    set_aside(turn, one);
    EXPECT_EQ(runner_.busy(), 1U);
    runner_.give_up(one);
    EXPECT_EQ(runner_.busy(), 0U);
    EXPECT_EQ(runner_.places_taken(), 0U);
    EXPECT_FALSE(is_among_long(one));
}

// ---- places

TEST_F(RunnerTest, WhereAllPlacesAreTakenWhatIsLongOrUnknownWaits) {
    code::Function &shown_short = function("short"), &shown_long = function("long"), &by_chance = function("chance"),
                   &unknown = function("unknown");
    shown_short.pace.ended_at_once();
    shown_long.pace.seen_long();
    for (int i = 0; i < 3; ++i) shown_long.pace.ended(1s, {});
    by_chance.pace.seen_long();
    const auto waits = [&](const code::Function& function)
                           REQUIRES(lock_of<EngineLock>) { return runner_.must_wait_for_thread(function, nullptr); };
    idle_.start_threads(2);
    rove::Run first{.function = &function("first")}, second{.function = &function("second")};
    have_led([&](Lead::Turn& turn) {
        set_aside(turn, first);
        EXPECT_FALSE(runner_.has_no_place());
        EXPECT_FALSE(waits(shown_long)) << "there is a place";
        set_aside(turn, second);
        EXPECT_TRUE(runner_.has_no_place());
        EXPECT_EQ(runner_.places_taken(), 2U);
        EXPECT_TRUE(waits(shown_long));
        EXPECT_FALSE(waits(by_chance)) << "only a run of it can show what it is";
        EXPECT_FALSE(waits(unknown)) << "a follower would take the lead over";
        EXPECT_FALSE(waits(shown_short));
    });
    // Whoever leads while the other one is in a function has no follower.
    std::atomic<bool> looked{false};
    code::Function& known = function("known");
    known.pace.seen_long();
    have_led([&](Lead::Turn& turn) {
        rove::Run one{.function = &known};
        idle_.work_once = [&](Lead::Turn&) {
            EXPECT_FALSE(lead_.has_followers());
            EXPECT_TRUE(waits(unknown));
            EXPECT_FALSE(waits(shown_short));
            looked = true;
        };
        run_in(turn, one, [&] { EXPECT_TRUE(soon([&] { return looked.load(); })); });
    });
    const Hold hold(lead_.mutex());
    for (rove::Run* each : {&first, &second}) runner_.give_up(*each);
    EXPECT_FALSE(waits(shown_long));
}

TEST_F(RunnerTest, ARunThatReadsItsPayloadTakesNoPlace) {
    Hold hold(lead_.mutex());
    Lead::Turn turn{.lock = hold.lock(), .baton = {.own = false}};
    rove::Run reads{.function = &function("reads")}, other{.function = &function("other")};
    idle_.own_threads.begin_gathering();
    set_aside(turn, reads);
    EXPECT_EQ(runner_.places_taken(), 0U);
    set_aside(turn, other);
    EXPECT_EQ(runner_.places_taken(), 1U);
    idle_.own_threads.end_gathering();
    EXPECT_EQ(runner_.places_taken(), 2U);
    for (rove::Run* each : {&reads, &other}) runner_.give_up(*each);
}

}  // namespace
}  // namespace rove::test
