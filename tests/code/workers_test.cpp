// Workers by themselves: threads that do what a test gives them.
#include "code/workers.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <future>
#include <thread>

#include "cache_parts.hpp"
#include "given_compiler.hpp"

namespace rove::code {
namespace {

// Tells when its thread ends.
struct Told {
    ~Told() {
        if (end != nullptr) end->set_value();
    }
    std::shared_ptr<std::promise<void>> end;
};
thread_local Told told;

class WorkersTest : public KeepingTest {
protected:
    using Piece = std::function<void()>;  // under the lock
    struct Done {
        Duty duty;
        pid_t by;
    };
    void TearDown() override {
        const LockOf lock(mutex_);
        workers_.stop(Clock::now() + kPatience);
    }
    [[nodiscard]] bool do_next(Duty duty) REQUIRES(lock_of<CodeCache>) {
        auto& pieces = pieces_[static_cast<std::size_t>(duty)];
        if (pieces.empty()) return false;
        const Piece piece = std::move(pieces.front());
        pieces.pop_front();
        piece();
        done_.push_back({duty, gettid()});
        lock_.notify_all();
        return true;
    }
    void give(Duty duty, Piece piece = [] {}) REQUIRES(lock_of<CodeCache>) {
        pieces_[static_cast<std::size_t>(duty)].push_back(std::move(piece));
        lock_.notify_all();
    }
    [[nodiscard]] bool are_done(std::size_t pieces) REQUIRES(lock_of<CodeCache>) {
        for (const TimePoint until = Clock::now() + kPatience; done_.size() < pieces && Clock::now() < until;)
            lock_.wait_until(until);
        return done_.size() == pieces;
    }
    [[nodiscard]] static bool comes(std::promise<void>& promise) {
        return promise.get_future().wait_for(kPatience) == std::future_status::ready;
    }

    std::deque<Piece> pieces_[kDuties];
    std::vector<Done> done_;
    std::shared_ptr<void> all_;
    Workers workers_{{.lock = lock_,
                      .options = options_,
                      .evictor = evictor_,
                      .all = [this] { return all_; },
                      .do_next = [this](Duty duty) { return do_next(duty); }}};
};

TEST_F(WorkersTest, EachDutyHasOneThatIsStartedForItsFirstWork) {
    const LockOf lock(mutex_);
    for (int i = 0; i < 3; ++i) {
        give(Duty::images);
        ASSERT_TRUE(workers_.start(Duty::images));
    }
    ASSERT_TRUE(are_done(3));
    EXPECT_NE(done_[0].by, gettid());
    give(Duty::bitcode);
    ASSERT_TRUE(workers_.start(Duty::bitcode));
    ASSERT_TRUE(are_done(4));
    give(Duty::images);  // while its worker waits
    ASSERT_TRUE(workers_.start(Duty::images));
    ASSERT_TRUE(are_done(5));
    for (const Done& each : done_)
        EXPECT_EQ(each.by == done_[0].by, each.duty == Duty::images) << "two duties have two threads";
}

TEST_F(WorkersTest, ItsFirstDutyIsDoneWithoutTheLock) {
    const LockOf lock(mutex_);
    bool was_first = false;
    give(Duty::bitcode);
    ASSERT_TRUE(workers_.start(Duty::bitcode, [&] {
        const LockOf held(mutex_);
        was_first = done_.empty();
    }));
    ASSERT_TRUE(are_done(1));
    EXPECT_TRUE(was_first);
}

TEST_F(WorkersTest, OneThatHandsItsDutyOverEndsAfterItsPiece) {
    const auto package = this->package("sum", 10);
    const auto end = std::make_shared<std::promise<void>>();
    std::promise<void> word;
    {
        const LockOf lock(mutex_);
        give(Duty::images, [&] {
            told.end = end;
            ASSERT_TRUE(workers_.hand_over(Duty::images, *package));
            const Unlocked free(mutex_);
            word.get_future().wait();
        });
        give(Duty::images);
        ASSERT_TRUE(workers_.start(Duty::images));
        EXPECT_TRUE(are_done(1)) << "another one does the next piece, while that one is not through";
    }
    word.set_value();
    EXPECT_TRUE(comes(*end));
    const LockOf lock(mutex_);
    give(Duty::images);
    ASSERT_TRUE(are_done(3));
    EXPECT_NE(done_[1].by, done_[0].by);
    EXPECT_EQ(done_[2].by, done_[0].by);
}

TEST_F(WorkersTest, StopWaitsForThePieceThatIsUnderWay) {
    const LockOf lock(mutex_);
    std::promise<void> begun;
    give(Duty::images, [&] {
        begun.set_value();
        while (!lock_.has_stopped()) lock_.wait();
        const Unlocked free(mutex_);
        std::this_thread::yield();
    });
    give(Duty::images);
    ASSERT_TRUE(workers_.start(Duty::images));
    {
        const Unlocked free(mutex_);
        ASSERT_TRUE(comes(begun));
    }
    workers_.stop(Clock::now() + kPatience);
    EXPECT_TRUE(lock_.has_stopped());
    EXPECT_EQ(done_.size(), 1U) << "that one is done, and none is begun";
    ASSERT_TRUE(workers_.start(Duty::bitcode, [this] { options_.node.clear(); }));
    workers_.stop(Clock::now() + kPatience);
    EXPECT_EQ(options_.node, "node 7") << "none is started any more";
}

TEST_F(WorkersTest, OneThatGoesOnIsAbandonedWithAllThatItUses) {
    std::promise<void> begun, word, released;
    all_ = std::shared_ptr<void>(this, [&released](void*) { released.set_value(); });
    auto is_released = released.get_future();
    {
        const LockOf lock(mutex_);
        give(Duty::bitcode, [&] {
            begun.set_value();
            const Unlocked free(mutex_);
            word.get_future().wait();
        });
        ASSERT_TRUE(workers_.start(Duty::bitcode));
    }
    ASSERT_TRUE(comes(begun));
    {
        const LockOf lock(mutex_);
        workers_.stop(Clock::now());
    }
    all_.reset();
    EXPECT_EQ(is_released.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    word.set_value();
    EXPECT_EQ(is_released.wait_for(kPatience), std::future_status::ready);
}

TEST_F(WorkersTest, TheEndOfAPieceOfWorkIsTold) {
    options_.code_bytes_max = 9000;
    const auto older = store("older", 6000), newer = store("newer", 6000);
    ASSERT_TRUE(add(older));
    std::vector<Digest> ready;
    options_.on_ready = [&](const Digest& package) {
        const LockOf held(mutex_);  // it is free
        ready.push_back(package);
    };
    std::promise<void> waits;
    bool is_over = false;
    std::future<void> waiter = std::async(std::launch::async, [&] {
        const LockOf lock(mutex_);
        waits.set_value();
        while (!is_over) lock_.wait();
    });
    ASSERT_TRUE(comes(waits));
    {
        const LockOf lock(mutex_);
        workers_.begin_work();
        EXPECT_EQ(workers_.working(), 1U);
        PackageCode& package = known_.add(std::make_unique<PackageCode>(owner_, newer));
        budgets_.count(package);
        EXPECT_TRUE(budgets_.is_over());
        is_over = true;
        workers_.end_work(newer->digest());
        EXPECT_EQ(workers_.working(), 0U);
        EXPECT_FALSE(budgets_.is_over()) << "what was too much is taken away";
    }
    EXPECT_EQ(waiter.wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(ready, std::vector<Digest>{newer->digest()});
    const LockOf lock(mutex_);
    workers_.begin_work();
    lock_.stop();
    workers_.end_work(newer->digest());
    EXPECT_EQ(ready.size(), 1U) << "nobody is called once the cache has stopped";
}

}  // namespace
}  // namespace rove::code
