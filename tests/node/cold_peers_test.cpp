// Peers that have been quiet, which an engine does not look at until something comes from them: nothing of what they send is missed.
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../api/nodes.hpp"
#include "../seed.hpp"
#include "engine_view.hpp"
#include "fabric/board.hpp"
#include "node/core.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

constexpr std::size_t kMany = 12;

std::atomic<NodeCore*> core{nullptr};
int add(Here& here, int a, int b) {
    core = &here.raw()->node();
    return a + b;
}
int have_the_caller_add(Here& here, int a, int b) {
    return here.caller().sync(fn<add>, a, b);
}
std::atomic<int> posted_back{0};
void count_post(Here& /*here*/) {
    ++posted_back;
}
void post_back(Here& here) {
    here.caller().post(fn<count_post>);
}

class ColdPeers : public OnFabrics {
protected:
    void SetUp() override {
        OnFabrics::SetUp();
        for (std::size_t i = 0; i < kMany; ++i) {
            clients_.push_back(std::make_unique<Node>(started(options())));
            peers_.push_back(clients_.back()->connect(server_->address()));
            EXPECT_EQ(peers_.back().sync(fn<add>, 1, 2), 3);
        }
        engine_ = &core.load()->first_engine();
        EXPECT_TRUE(are_cold());
    }
    void TearDown() override {
        peers_.clear();
        clients_.clear();
        OnFabrics::TearDown();
    }
    // While another one calls: a node that sleeps leaves its links as they are.
    [[nodiscard]] bool are_cold() {
        return soon([&] {
            EXPECT_EQ(peer().sync(fn<add>, 1, 2), 3);
            return EngineView::warm_peers(*engine_) <= kWarmMax;
        });
    }

    std::vector<std::unique_ptr<Node>> clients_;
    std::vector<Peer> peers_;
    Engine* engine_ = nullptr;
};
ROVE_ON_FABRICS(ColdPeers);

TEST_P(ColdPeers, EachIsAnsweredWhenItCallsAgain) {
    for (int round = 0; round < 3; ++round) {
        for (const Peer& each : peers_)
            EXPECT_EQ(each.sync(within(std::chrono::seconds(20)), fn<add>, round, 4), round + 4);
        EXPECT_TRUE(are_cold());
    }
}

TEST_P(ColdPeers, TheyAreCalledAndAnswer) {
    for (const Peer& each : peers_) EXPECT_EQ(each.sync(fn<have_the_caller_add>, 3, 4), 7);
    posted_back = 0;
    for (const Peer& each : peers_) each.post(fn<post_back>);
    EXPECT_TRUE(soon([] { return posted_back == static_cast<int>(kMany); }));
}

TEST_P(ColdPeers, OneThatLeavesIsNoticed) {
    const std::size_t before = engine_->peers().count();
    peers_.pop_back();
    clients_.pop_back();
    EXPECT_TRUE(soon([&] { return engine_->peers().count() == before - 1; }));
    for (const Peer& each : peers_) EXPECT_EQ(each.sync(fn<add>, 2, 2), 4);
}

// Calls at all moments: of peers that are cold, are about to be, or have just been warmed, while the node sleeps or not.
TEST_P(ColdPeers, NoneIsForgottenWheneverItCalls) {
    constexpr int kCalls = 12;
    std::atomic<int> answered{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kMany; ++i)
        threads.emplace_back([&, i] {
            std::mt19937_64 random(seed() + i);
            for (int call = 0; call < kCalls; ++call) {
                std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
                if (peers_[i].sync(within(std::chrono::seconds(30)), fn<add>, call, 1) == call + 1) ++answered;
            }
        });
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(answered, kCalls * static_cast<int>(kMany));
}

// ---- whoever has a place on a board can write all of it

class ColdPeersInMemory : public ColdPeers {
protected:
    // The summaries of all boards that this process has mapped: its nodes' own, and their peers'.
    static std::vector<std::uint64_t*> summaries() {
        std::vector<std::uint64_t*> found;
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);)
            if (line.find("rove-board") != std::string::npos)
                found.push_back(&reinterpret_cast<fabric::BoardMemory*>(std::stoull(line, nullptr, 16))->summary);
        return found;
    }
};
INSTANTIATE_TEST_SUITE_P(Fabrics, ColdPeersInMemory, testing::Values(kShm), fabric_name);

TEST_P(ColdPeersInMemory, AreServedThoughSomebodyClearsTheirBits) {
    const std::vector<std::uint64_t*> cleared = summaries();
    ASSERT_GE(cleared.size(), kMany);
    const std::jthread clears([&cleared](const std::stop_token& stop) {
        while (!stop.stop_requested())
            for (std::uint64_t* const each : cleared) std::atomic_ref(*each).store(0);
    });
    for (const Peer& each : peers_) EXPECT_EQ(each.sync(within(std::chrono::seconds(20)), fn<add>, 3, 4), 7);
}

}  // namespace
}  // namespace rove::test
