// The lead by itself: threads, with duties that a test makes up.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "lead/lead.hpp"
#include "no_fabric.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

class LeadAlone : public testing::TestWithParam<Waiting>, protected Lead::Duties {
protected:
    LeadAlone() { EXPECT_TRUE(lead_.open(fabric_, GetParam(), 2)); }
    // Not in the destructor: threads of the lead call what this is.
    void TearDown() override {
        {
            const Hold hold(lead_.mutex());
            lead_.stop();
            lead_.wake();
        }
        for (std::thread& each : threads_) each.join();
    }

    // What the leader does next, once, by whichever thread it is.
    void give(std::function<void(Lead::Turn&)> work) {
        const Hold hold(lead_.mutex());  // a leader may be busy
        work_ = std::move(work);
        lead_.wake();
    }
    void add_own_thread() {
        threads_.emplace_back([this] {
            Hold hold(lead_.mutex());
            Lead::Lock& lock = hold.lock();
            lead_.serve(lock);
        });
    }
    // As a function that takes its time, without the lock: until `done`.
    void run(Lead::Turn& turn, const std::atomic<bool>& done) REQUIRES(lock_of<EngineLock>) {
        const std::uint64_t term = turn.baton.term;
        runs_ = true;
        lead_.begin_run();
        turn.lock.unlock();
        while (!done) std::this_thread::yield();
        turn.lock.lock();
        lost_while_running_ = lead_.lost(term);
        if (!lost_while_running_) runs_ = false;
    }
    struct Until {
        const std::function<bool()>& done;
        Deadline deadline;
        [[nodiscard]] bool is_over() const { return done() || (deadline && Clock::now() >= *deadline); }
        [[nodiscard]] static bool wants_change() { return false; }
        static void change(Lead::Turn& /*turn*/) {}
    };
    // This thread waits, and leads where it may.
    void wait(const std::function<bool()>& done) {
        Hold hold(lead_.mutex());
        Lead::Lock& lock = hold.lock();
        Lead::Turn turn{.lock = lock, .baton = {.own = false}};
        const Deadline deadline = Clock::now() + std::chrono::seconds(20);
        Until until{done, deadline};
        lead_.wait(turn, deadline, until, false);
        EXPECT_TRUE(done());
    }
    template <typename Ask>
    bool under_lock(const Ask& ask) {
        const Hold hold(lead_.mutex());
        return ask();
    }

    NoFabric fabric_;
    Lead lead_{*this};
    std::function<void(Lead::Turn&)> work_ GUARDED_BY(lock_of<EngineLock>);
    bool runs_ GUARDED_BY(lock_of<EngineLock>) = false;
    bool taken_away_ GUARDED_BY(lock_of<EngineLock>) = false;
    bool lost_while_running_ GUARDED_BY(lock_of<EngineLock>) = false;
    std::atomic<bool> pending_{false};

private:
    unsigned work(Lead::Turn& turn) override REQUIRES(lock_of<EngineLock>) {
        lead_.wakes().begin_work();
        if (!work_) return 0;
        const auto work = std::exchange(work_, nullptr);
        work(turn);
        return 1;
    }
    void await_signals(Lead::Turn& turn) noexcept override REQUIRES(lock_of<EngineLock>) { turn.drop_awaited(); }
    [[nodiscard]] bool waits_for_room() const override REQUIRES(lock_of<EngineLock>) { return false; }
    [[nodiscard]] Lead::Rest rest(const Lead::Turn& /*turn*/) override REQUIRES(lock_of<EngineLock>) {
        return {.pending = work_ != nullptr};
    }
    void woke_up() override REQUIRES(lock_of<EngineLock>) {}
    [[nodiscard]] bool runs_function() const override REQUIRES(lock_of<EngineLock>) { return runs_; }
    void take_function_away() noexcept override REQUIRES(lock_of<EngineLock>) {
        runs_ = false;
        taken_away_ = true;
    }
    void follower_came() override REQUIRES(lock_of<EngineLock>) {}

    std::vector<std::thread> threads_;
};

TEST_P(LeadAlone, WhoWaitsDoesTheWorkThatItWaitsFor) {
    bool done = false;
    std::thread::id by;
    give([&](Lead::Turn&) {
        done = true;
        by = std::this_thread::get_id();
    });
    wait([&] { return done; });
    EXPECT_EQ(by, std::this_thread::get_id()) << "there is no other thread";
    EXPECT_FALSE(under_lock([&]() REQUIRES(lock_of<EngineLock>) { return lead_.is_led(); }))
        << "it keeps the lead when it has what it waited for";
}

TEST_P(LeadAlone, AnOwnThreadWorksWhileNobodyWaits) {
    add_own_thread();
    std::atomic<bool> done{false};
    give([&](Lead::Turn&) { done = true; });
    EXPECT_TRUE(soon([&] { return done.load(); }));
}

// Woken by nothing but wake(): there is no deadline, and there are no signals.
TEST_P(LeadAlone, ALeaderThatSleepsIsWoken) {
    add_own_thread();
    for (int i = 0; i < 100; ++i) {
        // Long enough for it to have fallen asleep, most times.
        std::this_thread::sleep_for(std::chrono::microseconds(300));
        std::atomic<bool> done{false};
        give([&](Lead::Turn&) { done = true; });
        ASSERT_TRUE(soon([&] { return done.load(); })) << "lost in round " << i;
    }
    if (GetParam() == Waiting::latency)
        EXPECT_EQ(fabric_.sleeps, 0) << "it looks all the time";
    else
        EXPECT_GT(fabric_.sleeps, 0);
}

// A reply is seen by the thread that wants it.
TEST_P(LeadAlone, WhoWaitsIsGivenTheLeadOfAnOwnThreadThatIsIdle) {
    add_own_thread();
    ASSERT_TRUE(soon([&] { return under_lock([&]() REQUIRES(lock_of<EngineLock>) { return lead_.is_led(); }); }));
    bool done = false, looked = false;
    std::thread::id by;
    wait([&]() REQUIRES(lock_of<EngineLock>) {
        if (!std::exchange(looked, true)) return false;
        if (!done)
            work_ = [&](Lead::Turn&) {
                done = true;
                by = std::this_thread::get_id();
            };
        return done;
    });
    EXPECT_EQ(by, std::this_thread::get_id());
}

// Another thread of the node's own serves while a function runs long, and the thread that runs it finds that it has lost the lead.
TEST_P(LeadAlone, AFunctionThatRunsLongGoesOnBesideTheLeader) {
    add_own_thread();
    add_own_thread();
    std::atomic<bool> returns{false}, begun{false}, done{false};
    give([&](Lead::Turn& turn) REQUIRES(lock_of<EngineLock>) {
        begun = true;
        run(turn, returns);
    });
    ASSERT_TRUE(soon([&] { return begun.load(); }));
    give([&](Lead::Turn&) { done = true; });
    EXPECT_TRUE(soon([&] { return done.load(); })) << "nobody took the lead over";
    EXPECT_TRUE(under_lock([&]() REQUIRES(lock_of<EngineLock>) { return taken_away_; }));
    returns = true;
    EXPECT_TRUE(soon([&] { return under_lock([&]() REQUIRES(lock_of<EngineLock>) { return lost_while_running_; }); }));
}

// Where all of the node's own threads are in functions, a thread that waits keeps watch.
TEST_P(LeadAlone, WhoWaitsTakesTheLeadOverFromALongFunction) {
    add_own_thread();
    std::atomic<bool> returns{false}, begun{false};
    give([&](Lead::Turn& turn) REQUIRES(lock_of<EngineLock>) {
        begun = true;
        run(turn, returns);
    });
    ASSERT_TRUE(soon([&] { return begun.load(); }));
    bool done = false;
    give([&](Lead::Turn&) { done = true; });
    wait([&] { return done; });
    EXPECT_TRUE(under_lock([&]() REQUIRES(lock_of<EngineLock>) { return taken_away_; }));
    returns = true;
    EXPECT_TRUE(soon([&] { return under_lock([&]() REQUIRES(lock_of<EngineLock>) { return lost_while_running_; }); }));
}

// It looks by itself that there is somebody, and leads where there is nobody.
TEST_P(LeadAlone, TheThreadThatStandsByLeadsWhereAllOthersAreInFunctions) {
    std::thread standing_by([&] {
        Hold hold(lead_.mutex());
        Lead::Lock& lock = hold.lock();
        lead_.stand_by(lock);
    });
    std::atomic<bool> done{false};
    give([&](Lead::Turn& turn) {
        EXPECT_FALSE(turn.runs_functions());
        done = true;
    });
    EXPECT_TRUE(soon([&] { return done.load(); }));
    {
        const Hold hold(lead_.mutex());
        lead_.stop();
        lead_.wake();
    }
    standing_by.join();
}

TEST_P(LeadAlone, APollThatWaitsForTheLeadIsInterrupted) {
    add_own_thread();
    ASSERT_TRUE(soon([&] { return under_lock([&]() REQUIRES(lock_of<EngineLock>) { return lead_.is_led(); }); }));
    std::atomic<bool> returned{false};
    std::thread polls([&] {
        Hold hold(lead_.mutex());
        Lead::Lock& lock = hold.lock();
        EXPECT_FALSE(lead_.wait_while_led(lock, Clock::now() + std::chrono::seconds(20)));
        returned = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    lead_.wakes().interrupt();
    EXPECT_TRUE(soon([&] { return returned.load(); }));
    polls.join();
}

// A leader that is busy turn after turn releases the lock for those that ask for it: otherwise this ends by its time limit.
TEST_P(LeadAlone, ABusyLeaderMakesWay) {
    add_own_thread();
    std::atomic<std::uint64_t> turns{0};
    std::function<void(Lead::Turn&)> again = [&](Lead::Turn&) REQUIRES(lock_of<EngineLock>) {
        ++turns;
        work_ = again;
    };
    give(again);
    for (int i = 0; i < 20; ++i) {
        lead_.mutex().lock_soon();
        lead_.mutex().unlock();
    }
    EXPECT_TRUE(soon([&] { return turns > 0; }));
    give(nullptr);  // what runs has ended: it does so under the lock
}

INSTANTIATE_TEST_SUITE_P(Ways, LeadAlone, testing::Values(Waiting::latency, Waiting::balanced, Waiting::frugal),
                         [](const auto& info) {
                             return std::string(info.param == Waiting::latency    ? "latency"
                                                : info.param == Waiting::balanced ? "balanced"
                                                                                  : "frugal");
                         });

}  // namespace
}  // namespace rove::test
