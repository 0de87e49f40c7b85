// How threads wait for something on their node, and how they poll: a Runner by itself.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lead/runner.hpp"
#include "running.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;

using RunnerWaits = Running;

TEST_F(RunnerWaits, WhoWaitsLeads) {
    std::thread::id by;
    EXPECT_TRUE(wait_for([&](Lead::Turn& turn) {
        EXPECT_TRUE(turn.runs_functions());
        by = std::this_thread::get_id();
    }));
    EXPECT_EQ(by, std::this_thread::get_id());
    EXPECT_FALSE(idle_.under_lock([&] { return lead_.is_led(); }));
}

TEST_F(RunnerWaits, WhoHasWhatItWaitsForDoesNothing) {
    rove::Run one{.function = &function("one")};
    run(one, [&] {
        Hold again(lead_.mutex());
        idle_.work_once = [](Lead::Turn&) { ADD_FAILURE() << "it led"; };
        EXPECT_TRUE(runner_.wait_until(again.lock(), std::nullopt, [] { return true; }));
        idle_.work_once = nullptr;
        EXPECT_FALSE(one.handed_over) << "it leads on";
    });
}

TEST_F(RunnerWaits, WhoIsLateLooksOnce) {
    Hold hold(lead_.mutex());
    bool done = false;
    const auto is_done = [&done] { return done; };
    const auto work = [&done](Lead::Turn&) { done = true; };
    LargeQueue turns;
    LargeQueue::Place large(turns);
    for (const Runner::Manner& manner :
         {Runner::Manner{.quiet = true}, Runner::Manner{.holds_back = true}, Runner::Manner{.large = &large}}) {
        idle_.work_once = work;
        EXPECT_FALSE(runner_.wait_until(hold.lock(), late(), is_done, manner)) << "a look may run functions";
    }
    EXPECT_TRUE(runner_.wait_until(hold.lock(), late(), is_done));
    done = false;
    EXPECT_FALSE(runner_.wait_until(hold.lock(), late(), is_done));
}

TEST_F(RunnerWaits, WhoWaitsIsToldByWhoeverLeads) {
    Hold hold(lead_.mutex());
    Lead::Turn turn{.lock = hold.lock(), .baton = {.own = false}};
    lead_.take(turn);
    bool done = false;
    std::atomic<unsigned> looks{0};
    std::atomic<bool> was_done{false};
    std::thread waits([&] {
        Hold waiting(lead_.mutex());
        was_done = runner_.wait_until(waiting.lock(), patience(), [&] {
            ++looks;
            return done;
        });
    });
    {
        const Unlocked free(hold.lock());
        EXPECT_TRUE(soon([&] { return looks > 1; }));
    }
    done = true;
    lead_.tell_waiting();
    {
        const Unlocked free(hold.lock());
        waits.join();
    }
    EXPECT_TRUE(was_done);
    EXPECT_FALSE(lead_.lost(turn)) << "the leader was not idle";
    lead_.give(turn);
}

TEST_F(RunnerWaits, WhoWaitsQuietlyRunsNothingOnTop) {
    const auto runs_functions = [this](Runner::Manner manner) {
        bool runs = false;
        EXPECT_TRUE(wait_for([&](Lead::Turn& turn) { runs = turn.runs_functions(); }, manner));
        return runs;
    };
    EXPECT_TRUE(runs_functions({}));
    EXPECT_FALSE(runs_functions({.quiet = true}));
    EXPECT_FALSE(runs_functions({.holds_back = true}));
    for (int i = 0; i < 2; ++i) ThreadRuns::forbid_nesting(1);
    EXPECT_FALSE(runs_functions({}));
    ThreadRuns::forbid_nesting(-1);
    EXPECT_TRUE(ThreadRuns::is_nesting_forbidden()) << "one scope of two has ended";
    EXPECT_FALSE(runs_functions({}));
    ThreadRuns::forbid_nesting(-1);
    EXPECT_TRUE(runs_functions({}));
}

TEST_F(RunnerWaits, WhatRunsOnTopOfAWaitKnowsWhatWaitsBeneath) {
    rove::Run lower{.function = &function("lower")}, unrelated;
    EXPECT_EQ(ThreadRuns::nested(), 0U);
    run(lower, [&] {
        EXPECT_TRUE(wait_for([&](Lead::Turn& turn) REQUIRES(lock_of<EngineLock>) {
            rove::Run upper;
            EXPECT_EQ(ThreadRuns::nested(), 1U);
            run_in(turn, upper, [&] {
                EXPECT_EQ(upper.beneath, &lower);
                EXPECT_EQ(upper.nested_in(), lower.function);
                EXPECT_EQ(runner_.depth(), 2U);
                EXPECT_EQ(ThreadRuns::innermost().run, &upper);
                EXPECT_TRUE(ThreadRuns::is_in(upper));
                EXPECT_TRUE(ThreadRuns::is_in(lower));
                EXPECT_FALSE(ThreadRuns::is_in(unrelated));
            });
            EXPECT_EQ(runner_.busy(), 1U);
        }));
        EXPECT_EQ(runner_.depth(), 1U);
        EXPECT_EQ(ThreadRuns::innermost().run, &lower);
    });
    EXPECT_EQ(ThreadRuns::nested(), 0U);
}

TEST_F(RunnerWaits, WhatWaitsHasNoPlaceMeanwhile) {
    rove::Run one{.function = &function("one")};
    run(one, [&] {
        EXPECT_TRUE(wait_for([&](Lead::Turn&) REQUIRES(lock_of<EngineLock>) {
            EXPECT_TRUE(one.waits);
            EXPECT_TRUE(one.handed_over);
            EXPECT_EQ(runner_.places_taken(), 0U) << "others may begin while it waits";
            std::this_thread::sleep_for(code::Pace::kShort);
        }));
        const Hold again(lead_.mutex());
        EXPECT_FALSE(one.waits);
        EXPECT_GE(one.waited, code::Pace::kShort);
        EXPECT_EQ(runner_.places_taken(), 1U) << "it runs on, and another thread leads";
        EXPECT_EQ(runner_.leading(), nullptr);
    });
    const Hold hold(lead_.mutex());
    EXPECT_EQ(runner_.places_taken(), 0U);
    EXPECT_EQ(runner_.busy(), 0U);
}

// What it does itself is next to nothing, unless the machine holds it up.
TEST_F(RunnerWaits, TheTimeInWhichAFunctionWaitsDoesNotMakeItLong) {
    code::Function& waits = function("waits");
    EXPECT_TRUE(soon([&] {
        waits.pace.seen_long();
        rove::Run one{.function = &waits};
        run(one, [&] { EXPECT_TRUE(wait_for([](Lead::Turn&) { std::this_thread::sleep_for(code::Pace::kShort); })); });
        return !waits.pace.is_long();
    }));
}

TEST_F(RunnerWaits, WhatHasWaitedQuietlyIsReplacedUntilItReturns) {
    idle_.start_threads(2);
    have_led([&](Lead::Turn& turn) {
        rove::Run one{.function = &function("one")};
        run_in(turn, one, [&] {
            Hold again(lead_.mutex());
            (void)runner_.wait_until(again.lock(), Clock::now() + 1ms, [] { return false; }, {.quiet = true});
            EXPECT_TRUE(one.replaced);
            EXPECT_EQ(idle_.own_threads.quiet().threads(), 1U);
        });
        EXPECT_EQ(idle_.own_threads.quiet().threads(), 0U);
        EXPECT_TRUE(one.function->waits_quietly) << "the next run of it may as well";
    });
}

TEST_F(RunnerWaits, AThreadIsDeepWhereAsManyWaitInItAsMay) {
    unsigned deepest = 0;
    const std::function<void()> nest = [&] {
        if (ThreadRuns::is_deep()) {
            deepest = ThreadRuns::nested();
            return;
        }
        EXPECT_TRUE(wait_for([&](Lead::Turn& turn) REQUIRES(lock_of<EngineLock>) {
            rove::Run upper;
            run_in(turn, upper, nest);
        }));
    };
    EXPECT_FALSE(ThreadRuns::is_deep());
    rove::Run lowest;
    run(lowest, nest);
    EXPECT_EQ(deepest, kNestedMax);
    EXPECT_FALSE(ThreadRuns::is_deep());
}

TEST_F(RunnerWaits, TheEndEndsAllWaits) {
    std::atomic<bool> waits{false}, was_done{true};
    std::thread waiting([&] {
        Hold hold(lead_.mutex());
        was_done = runner_.wait_until(hold.lock(), std::nullopt, [&] {
            waits = true;
            return false;
        });
    });
    EXPECT_TRUE(soon([&] { return waits.load(); }));
    Hold hold(lead_.mutex());
    EXPECT_FALSE(runner_.is_ending());
    runner_.end_waits();
    EXPECT_TRUE(runner_.is_ending());
    lead_.wake();
    lead_.tell_waiting();
    {
        const Unlocked free(hold.lock());
        waiting.join();
    }
    EXPECT_FALSE(was_done);
    idle_.work_once = [](Lead::Turn&) { ADD_FAILURE() << "it led"; };
    EXPECT_FALSE(runner_.wait_until(hold.lock(), std::nullopt, [] { return false; })) << "and those that come later";
    idle_.work_once = nullptr;
}

// ---- on another engine

class RunnerElsewhere : public Running {
protected:
    // As wait_for(), on the other engine.
    bool wait_there(const std::function<void(Lead::Turn&)>& work, Runner::Manner manner = {}) {
        Hold hold(other_.lead.mutex());
        bool done = false;
        other_.work_once = [&](Lead::Turn& turn) {
            work(turn);
            done = true;
        };
        return other_.runner.wait_until(hold.lock(), patience(), [&] { return done; }, manner);
    }
    IdleLead other_{2, cache_};
};

TEST_F(RunnerElsewhere, WhatWaitsThereLeadsHereNoMoreAndHasNoPlace) {
    rove::Run one{.function = &function("one")};
    run(one, [&] {
        EXPECT_TRUE(wait_there([&](Lead::Turn& turn) REQUIRES(lock_of<EngineLock>) {
            const Unlocked free(turn.lock);
            const Hold here(lead_.mutex());
            EXPECT_TRUE(one.waits);
            EXPECT_TRUE(one.handed_over);
            EXPECT_FALSE(lead_.is_led());
            EXPECT_EQ(runner_.places_taken(), 0U) << "others may begin while it waits";
            EXPECT_EQ(ThreadRuns::nested(), 1U);
            std::this_thread::sleep_for(code::Pace::kShort);
        }));
        const Hold again(lead_.mutex());
        EXPECT_FALSE(one.waits);
        EXPECT_GE(one.waited, code::Pace::kShort);
        EXPECT_EQ(runner_.places_taken(), 1U) << "it runs on";
    });
    EXPECT_EQ(ThreadRuns::nested(), 0U);
    const Hold hold(lead_.mutex());
    EXPECT_EQ(runner_.places_taken(), 0U);
    EXPECT_EQ(runner_.busy(), 0U);
}

TEST_F(RunnerElsewhere, AThreadHasOneStackOfRuns) {
    rove::Run lower{.function = &function("lower")};
    run(lower, [&] {
        EXPECT_TRUE(wait_there([&](Lead::Turn& turn) REQUIRES(lock_of<EngineLock>) {
            rove::Run upper;
            other_.runner.begin(upper, turn);
            other_.runner.outside(upper, turn, [&] {
                EXPECT_EQ(upper.beneath, &lower);
                EXPECT_EQ(upper.beneath_of, &runner_);
                EXPECT_EQ(upper.nested_in(), lower.function);
                EXPECT_TRUE(ThreadRuns::is_in(lower));
                EXPECT_EQ(runner_.depth(), 1U);
                EXPECT_EQ(other_.runner.depth(), 1U);
                EXPECT_TRUE(wait_for([](Lead::Turn&) { EXPECT_EQ(ThreadRuns::nested(), 2U); }));
                EXPECT_TRUE(upper.handed_over);
            });
        }));
    });
    EXPECT_FALSE(ThreadRuns::is_in_any());
}

TEST_F(RunnerElsewhere, AThreadThatWaitsThereIsReplacedHere) {
    idle_.start_threads(2);
    have_led([&](Lead::Turn& turn) {
        rove::Run one{.function = &function("one")};
        run_in(turn, one, [&] {
            EXPECT_TRUE(wait_there([](Lead::Turn&) {}));
            EXPECT_TRUE(one.replaced);
            EXPECT_EQ(idle_.under_lock([&] { return idle_.own_threads.quiet().threads(); }), 1U);
        });
        EXPECT_EQ(idle_.own_threads.quiet().threads(), 0U);
    });
}

TEST_F(RunnerElsewhere, WhereThereAreNoOtherThreadsHereTheOneThatWaitsThereServesBoth) {
    rove::Run one{.function = &function("one")};
    bool served = false;
    run(one, [&] {
        for (const bool quiet : {false, true}) {
            idle_.under_lock([&] {
                idle_.work_once = [&served, quiet](Lead::Turn& turn) {
                    served = true;
                    EXPECT_EQ(turn.runs_functions(), !quiet);
                };
            });
            Hold hold(other_.lead.mutex());
            EXPECT_TRUE(other_.runner.wait_until(hold.lock(), patience(), [&] { return served; }, {.quiet = quiet}));
            served = false;
        }
    });
}

TEST_F(RunnerElsewhere, TheLoneThreadServesAlsoTheEngineOfAFunctionThatWaitsBeneathAnother) {
    rove::Run lower{.function = &function("lower")}, upper{.function = &function("upper")};
    run(lower, [&] {
        EXPECT_TRUE(wait_there([&](Lead::Turn& turn) REQUIRES(lock_of<EngineLock>) {
            other_.runner.begin(upper, turn);
            other_.runner.outside(upper, turn, [&] {
                bool served = false;
                idle_.under_lock([&] { idle_.work_once = [&served](Lead::Turn&) { served = true; }; });
                Hold hold(other_.lead.mutex());
                EXPECT_TRUE(other_.runner.wait_until(hold.lock(), patience(), [&served] { return served; }));
            });
        }));
    });
}

TEST_F(RunnerElsewhere, WhoHasWhatItWaitsForThereLeadsOn) {
    rove::Run one{.function = &function("one")};
    run(one, [&] {
        Hold hold(other_.lead.mutex());
        EXPECT_TRUE(other_.runner.wait_until(hold.lock(), std::nullopt, [] { return true; }));
        EXPECT_FALSE(one.handed_over);
    });
}

// Another thread may have taken what there was before this one is back.
TEST_F(RunnerElsewhere, WhatIsOverAgainIsWaitedForAgain) {
    rove::Run one{.function = &function("one")};
    run(one, [&] {
        unsigned looks = 0;
        Hold hold(other_.lead.mutex());
        EXPECT_TRUE(other_.runner.wait_until(hold.lock(), patience(), [&looks] {
            ++looks;
            return looks == 3 || looks > 5;
        }));
        EXPECT_GT(looks, 5U);
    });
}

TEST_F(RunnerElsewhere, WhoAsksOrPollsThereLeadsHereNoMore) {
    for (const bool polls : {false, true}) {
        rove::Run one{.function = &function("one")};
        run(one, [&] {
            if (!polls) one.noticed = Clock::now();
            {
                Hold hold(other_.lead.mutex());
                unsigned looked = 0;
                other_.work_once = [&](Lead::Turn&) { ++looked; };
                if (polls)
                    EXPECT_EQ(other_.runner.poll(hold.lock(), 0ms), 1U);
                else
                    other_.runner.look_once(hold.lock());
                EXPECT_EQ(looked, 1U);
            }
            const Hold again(lead_.mutex());
            EXPECT_TRUE(one.handed_over);
            EXPECT_FALSE(one.noticed);
            EXPECT_FALSE(lead_.is_led());
        });
    }
}

// ---- polling

TEST_F(RunnerWaits, APollDoesWhatIsThereAndWaitsNoLonger) {
    Hold hold(lead_.mutex());
    EXPECT_EQ(runner_.poll(hold.lock(), 0ms), 0U);
    EXPECT_EQ(runner_.poll(hold.lock(), 1ms), 0U);
    bool done = false;
    idle_.work_once = [&done](Lead::Turn&) { done = true; };
    EXPECT_EQ(runner_.poll(hold.lock(), 20'000ms), 1U);
    EXPECT_TRUE(done);
    EXPECT_FALSE(lead_.is_led());
}

TEST_F(RunnerWaits, APollBesideALeaderWaitsForTheLead) {
    Hold hold(lead_.mutex());
    Lead::Turn turn{.lock = hold.lock(), .baton = {.own = false}};
    lead_.take(turn);
    idle_.work_once = [](Lead::Turn&) {};
    EXPECT_EQ(runner_.poll(hold.lock(), 0ms), 0U);
    EXPECT_NE(idle_.work_once, nullptr);
    std::atomic<unsigned> handled{0};
    std::thread polls([&] {
        Hold polling(lead_.mutex());
        handled = runner_.poll(polling.lock(), 20'000ms);
    });
    {
        const Unlocked free(hold.lock());
        std::this_thread::sleep_for(2ms);
    }
    EXPECT_NE(idle_.work_once, nullptr) << "two threads would lead";
    lead_.give(turn);
    {
        const Unlocked free(hold.lock());
        polls.join();
    }
    EXPECT_EQ(handled, 1U);
}

// Who is in a function may be what the leader waits for.
TEST_F(RunnerWaits, APollInAFunctionDoesNotWaitForTheLead) {
    rove::Run one{.function = &function("one")};
    run(one, [&] {
        Hold again(lead_.mutex());
        const TimePoint before = Clock::now();
        EXPECT_EQ(runner_.poll(again.lock(), 20'000ms), 0U);
        EXPECT_LT(Clock::now() - before, 10s) << "it waited for itself";
        EXPECT_FALSE(one.handed_over);
    });
}

TEST_F(RunnerWaits, WhoAsksInAFunctionLeadsForOneLookAndNoMore) {
    rove::Run one{.function = &function("one")};
    run(one, [&] {
        Hold again(lead_.mutex());
        one.noticed = Clock::now();
        unsigned looked = 0;
        idle_.work_once = [&](Lead::Turn&) { ++looked; };
        runner_.look_once(again.lock());
        EXPECT_EQ(looked, 1U);
        EXPECT_TRUE(one.handed_over);
        EXPECT_FALSE(one.noticed) << "it waits for no lock";
        EXPECT_FALSE(lead_.is_led());
    });
}

TEST_F(RunnerWaits, WhoAsksOutsideOfFunctionsLooksWhereThereAreNoOtherThreads) {
    unsigned looked = 0;
    const auto look = [&] {
        Hold hold(lead_.mutex());
        idle_.work_once = [&](Lead::Turn&) { ++looked; };
        runner_.look_once(hold.lock());
        idle_.work_once = nullptr;
    };
    look();
    EXPECT_EQ(looked, 1U);
    idle_.start_threads(2);
    look();
    EXPECT_EQ(looked, 1U) << "the node's threads serve";
}

}  // namespace
}  // namespace rove::test
