// Functions whose large arguments take long to be read: what their sender sent before it went still counts, and they are not long for it.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "../api/nodes.hpp"
#include "engine/gathering.hpp"
#include "engine/here.hpp"
#include "node/core.hpp"
#include "soon.hpp"

namespace rove::test {

// Travels as its bytes. The first one of a payload is copied for as long as the test says.
struct Heavy {
    Heavy() = default;
    explicit Heavy(std::uint64_t its_number) : number(its_number) {}
    Heavy(const Heavy& other) : number(other.number) {
        if (number != kFirst || !is_slow.load(std::memory_order_relaxed)) return;
        ++begun;
        while (is_slow) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    Heavy& operator=(const Heavy&) = default;
    ~Heavy() = default;

    static constexpr std::uint64_t kFirst = 1;
    static inline std::atomic<bool> is_slow{false};
    static inline std::atomic<int> begun{0};
    std::uint64_t number = 0;
};

}  // namespace rove::test

template <>
struct rove::migratable<rove::test::Heavy> {
    static constexpr bool safe = true;
};

namespace rove::test {
namespace {

using namespace std::chrono_literals;

std::atomic<NodeCore*> core_of_server{nullptr};
std::atomic<std::size_t> taken{0};
std::atomic<int> noted{0};
void note_server(Here& here) {
    core_of_server = &here.raw()->node();
}
void take(const std::vector<Heavy>& values) {
    taken += values.size();
}
int add(int a, int b) {
    return a + b;
}
std::atomic<const code::Function*> measured{nullptr};
bool counted_as_long(Here& here, const std::vector<Heavy>& values) {
    measured = here.raw()->function;
    return here.raw()->function->pace.is_long() && !values.empty();
}
void note() {
    ++noted;
}
std::vector<Heavy> heavy(std::size_t count) {
    std::vector<Heavy> values;
    values.reserve(count);
    for (std::size_t i = 0; i < count; ++i) values.emplace_back(Heavy::kFirst + i);
    return values;
}

class SlowArguments : public OnFabrics {
protected:
    void SetUp() override {
        OnFabrics::SetUp();
        Heavy::is_slow = false;
        Heavy::begun = noted = 0;
        taken = 0;
    }
    void TearDown() override {
        Heavy::is_slow = false;
        OnFabrics::TearDown();
    }
    static constexpr std::size_t kCount = 50'000;
};
ROVE_ON_FABRICS(SlowArguments);
// Only there functions read the mailbox themselves.
class SlowArgumentsInMemory : public SlowArguments {};
ROVE_ON_DIRECT_FABRICS(SlowArgumentsInMemory);

// The function reads the mailbox itself, and is still at its first value when its sender goes.
TEST_P(SlowArgumentsInMemory, WhatArrivedBeforeItsSenderWentCounts) {
    peer().sync(fn<note_server>);
    NodeCore& core = *core_of_server;
    const std::vector<Heavy> values = heavy(kCount);
    auto goes = std::make_unique<Node>(started(options()));
    std::optional<Peer> to = goes->connect(server_->address());
    to->sync(fn<note>);
    to->sync(fn<take>, values);  // from here on the server knows that it can read its payload as it arrives
    int sent = 0;
    const auto all_taken = [&] { return taken == kCount * static_cast<std::size_t>(1 + sent); };
    ASSERT_TRUE(soon([&] {  // it does so where a thread is free to lead until then, which may not have begun yet
        Heavy::is_slow = true;
        to->post(fn<take>, values);
        ++sent;
        if (!soon([&] { return Heavy::begun == sent; }) || core.first_engine().gatherings().running() == 1) return true;
        Heavy::is_slow = false;
        (void)soon(all_taken);
        return false;
    }));
    ASSERT_EQ(core.first_engine().gatherings().running(), 1U);
    to->post(fn<note>);
    to.reset();
    goes.reset();
    std::this_thread::sleep_for(300ms);  // in which the server would forget it
    Heavy::is_slow = false;
    EXPECT_TRUE(soon([&] { return all_taken() && noted == 2; })) << taken << ", " << noted;
}

// Reading takes so long that another thread takes the lead over. What counts is the time after that.
TEST_P(SlowArguments, AFunctionIsNotLongForThem) {
    peer().sync(fn<note_server>);
    NodeCore& core = *core_of_server;
    const std::vector<Heavy> values = heavy(kCount);
    // A run that the machine interrupts counts as long, too: not each of them does.
    EXPECT_TRUE(soon([&] {
        Heavy::begun = 0;
        Heavy::is_slow = true;
        Call<bool> slow = peer().async(fn<counted_as_long>, values);
        EXPECT_TRUE(soon([] { return Heavy::begun == 1; }));
        EXPECT_EQ(peer().sync(fn<add>, 1, 2), 3) << "another thread leads from here on";
        std::this_thread::sleep_for(50ms);
        Heavy::is_slow = false;
        (void)slow.get();
        EXPECT_TRUE(soon([&] {
            const Hold hold(core.first_engine().lock());
            return measured.load()->pace.has_ended();
        }));
        return !peer().sync(fn<counted_as_long>, values);
    }));
}

}  // namespace
}  // namespace rove::test
