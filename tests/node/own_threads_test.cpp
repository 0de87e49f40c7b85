// A node's own threads, without a node.
#include "lead/own_threads.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "idle_lead.hpp"
#include "lead/run.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

class OwnThreadsTest : public testing::Test {
protected:
    void start(unsigned count) { idle_->start_threads(count); }
    template <typename Ask>
    auto under_lock(const Ask& ask) {
        return idle_->under_lock(ask);
    }
    std::size_t made() {
        return under_lock([this]() REQUIRES(lock_of<EngineLock>) { return own_.made(); });
    }
    unsigned gatherings() {
        return under_lock([this]() REQUIRES(lock_of<EngineLock>) { return own_.gatherings(); });
    }
    // On another thread of the node's own, under the lock.
    void run(const std::function<void()>& what) {
        struct Job {
            const std::function<void()>& what;
            std::atomic<bool> done{false};
        } job{what};
        value_or_throw(under_lock([&]() REQUIRES(lock_of<EngineLock>) {
            return own_.add(
                [](void* argument, OwnThreads::Lock&, OwnThreads::One&) {
                    auto& its_job = *static_cast<Job*>(argument);
                    its_job.what();
                    its_job.done = true;
                },
                &job);
        }));
        EXPECT_TRUE(soon([&] { return job.done.load(); }));
    }

    std::unique_ptr<IdleLead> idle_ = std::make_unique<IdleLead>();
    OwnThreads& own_ = idle_->own_threads;
};

TEST_F(OwnThreadsTest, BesideSeveralThatRunFunctionsOneStandsBy) {
    start(3);
    EXPECT_EQ(own_.count(), 3U);
    EXPECT_EQ(made(), 4U);
    EXPECT_TRUE(under_lock([this]() REQUIRES(lock_of<EngineLock>) { return own_.make_enough(); }));
    EXPECT_EQ(made(), 4U) << "there are enough";
    EXPECT_TRUE(under_lock([this]() REQUIRES(lock_of<EngineLock>) { return own_.make_enough(2); }));
    EXPECT_EQ(made(), 6U);
    EXPECT_FALSE(own_.is_mine());
}

TEST_F(OwnThreadsTest, OneAloneRunsEverything) {
    start(1);
    EXPECT_EQ(made(), 1U);
}

TEST_F(OwnThreadsTest, AFunctionThatWaitsQuietlyHasAnotherThreadInItsPlace) {
    start(2);
    const std::size_t at_first = made();
    run([&]() REQUIRES(lock_of<EngineLock>) {
        EXPECT_TRUE(own_.is_mine());
        code::Function function;
        rove::Run one{.function = &function};
        rove::Run two{.function = &function};
        EXPECT_TRUE(own_.replace(one));
        EXPECT_TRUE(one.replaced);
        EXPECT_TRUE(function.waits_quietly);
        EXPECT_TRUE(own_.replace(two));  // on top of it, in the same thread
        EXPECT_EQ(own_.quiet().threads(), 1U);
        own_.take_back(two);
        EXPECT_EQ(own_.quiet().threads(), 1U) << "the one beneath still waits";
        own_.take_back(one);
        EXPECT_EQ(own_.quiet().threads(), 0U);
    });
    EXPECT_GE(made(), at_first + 1);  // the one that ran this
}

TEST_F(OwnThreadsTest, AThreadOfTheProgramIsReplacedByNone) {
    start(2);
    code::Function function;
    rove::Run run{.function = &function};
    EXPECT_TRUE(under_lock([&]() REQUIRES(lock_of<EngineLock>) { return own_.replace(run); }));
    EXPECT_FALSE(run.replaced);
    EXPECT_EQ(made(), 3U);
}

TEST_F(OwnThreadsTest, WaitsThatLetNothingRunOnTopAreBounded) {
    start(2);
    for (unsigned i = 0; i < kUnnestedWaitsMax; ++i)
        ASSERT_TRUE(under_lock([this]() REQUIRES(lock_of<EngineLock>) { return own_.stop_nesting(); })) << i;
    EXPECT_FALSE(under_lock([this]() REQUIRES(lock_of<EngineLock>) { return own_.stop_nesting(); }));
    EXPECT_EQ(made(), 3U + kUnnestedWaitsMax) << "each has a thread made";
    under_lock([this]() REQUIRES(lock_of<EngineLock>) { own_.nest_again(); });
    EXPECT_TRUE(under_lock([this]() REQUIRES(lock_of<EngineLock>) { return own_.stop_nesting(); }));
    EXPECT_EQ(made(), 3U + kUnnestedWaitsMax) << "and those stay";
    under_lock([this]() REQUIRES(lock_of<EngineLock>) { own_.nest_again(kUnnestedWaitsMax); });
}

TEST_F(OwnThreadsTest, ARunThatReadsItsPayloadHasAThreadBesides) {
    start(2);
    under_lock([this]() REQUIRES(lock_of<EngineLock>) { own_.begin_gathering(); });
    EXPECT_TRUE(under_lock([this]() REQUIRES(lock_of<EngineLock>) { return own_.make_enough(); }));
    EXPECT_EQ(made(), 4U);
    under_lock([this]() REQUIRES(lock_of<EngineLock>) { own_.end_gathering(); });
    EXPECT_EQ(gatherings(), 0U);
}

// Its function never returns: the node's end does not wait for it, and another one runs what comes.
TEST_F(OwnThreadsTest, AThreadThatIsKeptHasAnotherOneInItsPlace) {
    start(2);
    static std::atomic<bool> is_kept = false;
    value_or_throw(under_lock([&]() REQUIRES(lock_of<EngineLock>) {
        return own_.add(
            [](void* argument, OwnThreads::Lock& lock, OwnThreads::One& self) REQUIRES(lock_of<EngineLock>) {
                auto& own = *static_cast<OwnThreads*>(argument);
                code::Function function;
                rove::Run run{.function = &function};
                EXPECT_TRUE(own.replace(run));
                const unsigned live = own.live();
                EXPECT_TRUE(own.keep_mine());
                EXPECT_EQ(own.live(), live) << "one more, and without this one";
                EXPECT_EQ(own.quiet().threads(), 0U) << "it holds no place of those that wait quietly";
                EXPECT_EQ(self.quiet_runs, 0U);
                is_kept = true;
                lock.unlock();
                for (;;) pause();
            },
            &own_);
    }));
    ASSERT_TRUE(soon([] { return is_kept.load(); }));
    EXPECT_TRUE(idle_->end_threads()) << "it is left to itself";
    static const IdleLead* left = nullptr;  // it still has this
    left = idle_.release();
    EXPECT_NE(left, nullptr);
}

}  // namespace
}  // namespace rove::test
