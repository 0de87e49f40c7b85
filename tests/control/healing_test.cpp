// Members without a link are met again: so many at once, each once, until they are met.
#include "control/healing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>
#include <vector>

#include "../node/soon.hpp"

namespace rove::test {
namespace {

using control::Healing;
using control::MemberEntry;

class HealingTest : public testing::Test {
protected:
    void SetUp() override {
        ids_.set_identity(3, 4);
        thread_.start([] {});
    }
    void TearDown() override {
        thread_.stop([] {});
        healing_.drop();
        thread_.drop();
    }
    void add(NodeId id, const std::string& address) {
        members_.set({.id = id, .generation = 1, .address = address, .key = {}}, MemberEntry::State::lost);
    }
    template <typename Work>
    auto on_thread(Work work) {
        std::packaged_task<decltype(work())()> task(std::move(work));
        auto done = task.get_future();
        asio::post(thread_.io(), [task = std::move(task)]() mutable { task(); });
        return done.get();
    }
    std::vector<NodeId> met() {
        return on_thread([this] { return met_; });
    }
    // One attempt: it fails as often as `fails_` says.
    asio::awaitable<Status> meet(NodeId id) {
        met_.push_back(id);
        most_at_once_ = std::max(most_at_once_, ++under_way_);
        co_await thread_.pause(std::chrono::milliseconds(10));
        --under_way_;
        if (fails_[id] > 0) {
            --fails_[id];
            co_return fail(ErrorCode::disconnected, "nobody answers");
        }
        members_.find(id)->state = MemberEntry::State::living;
        co_return Status();
    }

    control::ControlThread thread_{[] { return std::string("node 3"); }};
    NodeIds ids_;
    control::Members members_;
    std::vector<NodeId> met_;
    std::map<NodeId, unsigned> fails_;
    std::size_t under_way_ = 0, most_at_once_ = 0;
    Healing healing_{{.thread = thread_,
                      .members = members_,
                      .ids = ids_,
                      .name = [] { return std::string("node 3"); },
                      .meet = [this](NodeId id) { return meet(id); },
                      .give_up = [](NodeId, const wire::control::PublicKey&, const std::string&) {}}};
};

TEST_F(HealingTest, MeetsAsManyAtOnceAsThereArePlaces) {
    constexpr NodeId kAll = 2 * control::kHealingMax + 5;
    on_thread([this] {
        for (NodeId id = 0; id < kAll; ++id) {
            add(id, std::to_string(id));
            healing_.begin_at_once(id, nullptr);
        }
    });
    ASSERT_TRUE(soon([this] { return met().size() >= kAll; }));
    EXPECT_EQ(on_thread([this] { return most_at_once_; }), control::kHealingMax);
    EXPECT_EQ(met().size(), kAll) << "each once";
}

TEST_F(HealingTest, MeetsOneAtATimeAtOneAddress) {
    on_thread([this] {
        for (NodeId id = 0; id < 3; ++id) {
            add(id, "the same");
            healing_.begin_at_once(id, nullptr);
        }
    });
    ASSERT_TRUE(soon([this] { return met().size() == 3; }));
    EXPECT_EQ(on_thread([this] { return most_at_once_; }), 1U);
}

TEST_F(HealingTest, LeavesTheFirstAttemptToTheHigherId) {
    on_thread([this] {
        for (const NodeId id : {5U, 1U}) {
            add(id, std::to_string(id));
            healing_.begin(id);
        }
    });
    ASSERT_TRUE(soon([this] { return met().size() == 2; }));
    EXPECT_EQ(met(), (std::vector<NodeId>{1, 5})) << "this one is node 3";
}

TEST_F(HealingTest, TriesAgainAndTheFirstTryIsOverWhenItHasFailed) {
    const auto first = std::make_shared<Healing::FirstTry>(thread_.io());
    const auto second = std::make_shared<Healing::FirstTry>(thread_.io());
    fails_[1] = 2;
    on_thread([&] {
        add(1, "one");
        healing_.begin_at_once(1, first);
        EXPECT_FALSE(first->is_over);
        healing_.begin_at_once(1, second);
        EXPECT_TRUE(second->is_over) << "that is under way";
    });
    ASSERT_TRUE(soon([&] { return on_thread([&] { return first->is_over; }); }));
    ASSERT_TRUE(soon([this] { return met().size() == 3; }));
    ASSERT_TRUE(soon([this] { return on_thread([this] { return !members_.find(1)->healing; }); }));
    EXPECT_EQ(met(), (std::vector<NodeId>{1, 1, 1}));
}

}  // namespace
}  // namespace rove::test
