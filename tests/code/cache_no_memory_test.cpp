// A code cache that is refused memory, one allocation after the other: nothing stays taken, and the next call does its work.
#include <atomic>

#include "../watched_new.hpp"
#include "cache_fixture.hpp"

namespace {

// Counts down with each allocation: the one that makes it 0 is refused. 0: none is.
std::atomic<int> refused_in{0};
thread_local bool is_spared = false;

}  // namespace

void rove::test::asked_for(std::size_t /*bytes*/) {
    if (!is_spared && refused_in > 0 && refused_in.fetch_sub(1) == 1) throw std::bad_alloc();
}

namespace rove::code {
namespace {

constexpr int kMost = 500;  // that one piece of work asks for
constexpr const char* kOther =
    "ROVE_ENTRY void other(rove_here *h, const void *p, size_t n) { (void)h, (void)p, (void)n; }";

class CacheWithoutMemory : public CacheTest {
protected:
    void TearDown() override { refused_in = 0; }
};

TEST_F(CacheWithoutMemory, WhatCouldNotBeEnteredHoldsNothing) {
    const auto counter = build("counter.c", kCounter);
    const auto other = build("other.c", kOther);
    int refused = 1, refusals = 0;
    for (bool in_want = true; in_want && refused < kMost; ++refused) {
        CodeOptions one = options(Tiers::image);
        one.packages_max = 1;
        CodeCache cache(one);
        ASSERT_TRUE(cache.add(arriving(*counter, {Form::image}), false));
        Function* function = cache.find(counter->function_ids().front());
        bool entered = false;
        refused_in = refused;
        try {
            entered = std::holds_alternative<Entered>(cache.enter(*function));
        } catch (const std::bad_alloc&) {
        }
        in_want = refused_in.exchange(0) <= 0;
        if (entered) continue;
        ++refusals;
        EXPECT_EQ(cache.usage().static_bytes, 0U) << "allocation " << refused;
        EXPECT_EQ(cache.usage().loads, 0U) << "allocation " << refused;
        if (refused % 2 == 0)
            EXPECT_EQ(call(cache, *function), 41) << "allocation " << refused;
        else  // it makes room for another one
            EXPECT_TRUE(cache.add(arriving(*other, {Form::image}), false)) << "allocation " << refused;
    }
    EXPECT_GT(refusals, 5);
    EXPECT_LT(refused, kMost);
}

}  // namespace
}  // namespace rove::code
