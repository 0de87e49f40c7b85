// Engines that use one cache: what each of them runs, and how long what was forgotten stays for them.
#include "code/leaders.hpp"

#include <gtest/gtest.h>

#include "cache_parts.hpp"

namespace rove::code {
namespace {

class LeadersTest : public PartsTest {
protected:
    // A package that nobody else has: it goes when the leaders let it.
    [[nodiscard]] std::weak_ptr<PackageStore> forgotten(const std::string& name) {
        auto made = package(name, 10);
        const std::weak_ptr<PackageStore> store = made->store;
        const LockOf lock(mutex_);
        leaders_.keep_for_all(std::move(made));
        return store;
    }
    [[nodiscard]] Leading& add() {
        const LockOf lock(mutex_);
        return leaders_.add();
    }
    void let_go(Leading& place) {
        const LockOf lock(mutex_);
        leaders_.let_go(place);
    }

    Leaders leaders_;
};

TEST_F(LeadersTest, WithoutEnginesWhatIsForgottenGoesAtOnce) {
    EXPECT_TRUE(forgotten("sum").expired());
}

TEST_F(LeadersTest, WhatIsForgottenStaysUntilAllHaveLetGo) {
    Leading &one = add(), &other = add();
    EXPECT_TRUE(one.has_let_go()) << "nothing was forgotten";
    const auto first = forgotten("first");
    EXPECT_FALSE(one.has_let_go());
    let_go(one);
    EXPECT_TRUE(one.has_let_go());
    EXPECT_FALSE(other.has_let_go());
    const auto second = forgotten("second");
    EXPECT_FALSE(one.has_let_go()) << "of the second one";
    EXPECT_FALSE(first.expired());
    let_go(other);
    EXPECT_TRUE(first.expired());
    EXPECT_FALSE(second.expired()) << "one engine may have looked it up";
    let_go(one);
    EXPECT_TRUE(second.expired());
    const auto third = forgotten("third");
    let_go(other);
    EXPECT_FALSE(third.expired());
    let_go(one);
    EXPECT_TRUE(third.expired());
}

TEST_F(LeadersTest, AnEngineThatComesLaterHasNothingToLetGo) {
    Leading& early = add();
    const auto before = forgotten("before");
    Leading& late = add();
    EXPECT_TRUE(late.has_let_go());
    let_go(early);
    EXPECT_TRUE(before.expired());
}

TEST_F(LeadersTest, WhatNobodyHasLetGoGoesWithTheCache) {
    std::vector<std::weak_ptr<PackageStore>> stores;
    {
        Leaders leaders;
        const LockOf lock(mutex_);
        (void)leaders.add();
        for (int i = 0; i < 3; ++i) {
            auto made = package("sum", 10, std::to_string(i));
            stores.push_back(made->store);
            leaders.keep_for_all(std::move(made));
        }
        EXPECT_FALSE(stores[0].expired());
    }
    for (const auto& store : stores) EXPECT_TRUE(store.expired());
}

// A function that was looked up before its package was forgotten, and is entered after that: its code would be counted as nobody's.
TEST_F(LeadersTest, AFunctionThatWasForgottenWaitsForItsCode) {
    CodeOptions options = options_;
    options.packages_max = 1;
    CodeCache cache(options);
    Leading& place = cache.add_leader();
    auto first = package("first", 10)->store;
    ASSERT_TRUE(cache.add(first, false));
    const std::weak_ptr<PackageStore> is_there = first;
    first.reset();
    Function* const function = cache.find("first:run");
    ASSERT_NE(function, nullptr);
    ASSERT_TRUE(cache.add(package("second", 10)->store, false));
    EXPECT_EQ(cache.find("first:run"), nullptr);
    EXPECT_EQ(function->name, "first:run");
    EXPECT_EQ(cache.enter_leading(place, *function), nullptr);
    const auto entered = cache.enter(*function);
    ASSERT_TRUE(std::holds_alternative<Awaited>(entered));
    EXPECT_EQ(std::get<Awaited>(entered), Awaited::code);
    EXPECT_FALSE(is_there.expired());
    cache.let_go(place);
    EXPECT_TRUE(is_there.expired());
}

}  // namespace
}  // namespace rove::code
