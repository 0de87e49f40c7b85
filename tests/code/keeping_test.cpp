// Parts of a code cache by themselves: what becomes known and is forgotten for it, what is taken away, and what is in use at that time.
#include <gtest/gtest.h>

#include "cache_parts.hpp"

namespace rove::code {
namespace {

// ---- Admission

using AdmissionTest = KeepingTest;

TEST_F(AdmissionTest, APackageThatIsKnownGetsWhatItLacked) {
    const auto whole = store("sum");
    const auto manifest = PackageStore::from_manifest(whole->manifest_bytes());
    ASSERT_TRUE(manifest);
    EXPECT_EQ(*add(*manifest), *manifest);
    EXPECT_EQ((*manifest)->stored_slice(0), nullptr);
    EXPECT_EQ(*add(whole), *manifest) << "there is one of each";
    ASSERT_NE((*manifest)->stored_slice(0), nullptr);
    EXPECT_EQ(*(*manifest)->stored_slice(0), *whole->stored_slice(0));
    const PackageCode* const package = known(*whole);
    const LockOf lock(mutex_);
    EXPECT_EQ(package->compiled_for, 3U) << "who has sent it, as long as nobody waits for it";
}

TEST_F(AdmissionTest, TheOneUnusedForLongestIsForgottenForANewOne) {
    options_.packages_max = 2;
    const auto first = store("first"), second = store("second"), third = store("third");
    ASSERT_TRUE(add(first) && add(second));
    call(*first);
    ASSERT_TRUE(add(third));
    EXPECT_NE(known(*first), nullptr);
    EXPECT_EQ(known(*second), nullptr);
    EXPECT_NE(known(*third), nullptr);
}

TEST_F(AdmissionTest, WhatIsInUseOrStaysIsNotForgotten) {
    options_.packages_max = 2;
    const auto runs = store("runs"), stays = store("stays"), other = store("other");
    ASSERT_TRUE(add(runs) && add(stays, true));
    {
        const Running held(*known(*runs));
        const auto refused = add(other);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), ErrorCode::overloaded);
        EXPECT_TRUE(refused.error().message().starts_with("node 7 knows 2 packages, the most a node does"))
            << refused.error().message();
    }
    EXPECT_TRUE(add(other));
    EXPECT_EQ(known(*runs), nullptr) << "nobody runs it any more";
    EXPECT_NE(known(*stays), nullptr);
}

TEST_F(AdmissionTest, ManifestsHaveARoomOfTheirOwn) {
    options_.code_bytes_max = 1;
    std::vector<std::shared_ptr<PackageStore>> all;
    std::size_t held = 0;
    const auto most = [this] {
        const LockOf lock(mutex_);
        return budgets_.manifest_bytes_max();
    }();
    while (held <= most && all.size() < 5000) {
        all.push_back(store("package" + std::to_string(all.size()), 1));
        ASSERT_TRUE(add(all.back()));
        held += all.back()->manifest_bytes_held() + all.back()->function_ids().size() * kFunctionBytes;
    }
    ASSERT_GT(held, most);
    EXPECT_EQ(known(*all.front()), nullptr) << "the oldest has made room";
    EXPECT_NE(known(*all.back()), nullptr);
}

TEST_F(AdmissionTest, AFunctionOfTheProgramIsKnownOnce) {
    const LockOf lock(mutex_);
    const FunctionId id{{7}};
    const auto entry = reinterpret_cast<EntryPoint>(this);
    Function* const added = *admission_.add_resident(id, "at_home", entry);
    EXPECT_EQ(*admission_.add_resident(id, "at_home", entry), added);
    EXPECT_EQ(known_.functions(), 1U);
}

// ---- Candidates

class CandidatesTest : public KeepingTest {
protected:
    // The lists that it is in.
    [[nodiscard]] static std::string lists_of(const PackageCode& package) {
        std::string lists;
        for (const auto& [name, listing] :
             {std::pair("slices ", &package.with_slices), std::pair("evictable ", &package.evictable),
              std::pair("idle ", &package.idle), std::pair("forgettable ", &package.forgettable)})
            if (listing->is_listed()) lists += name;
        return lists;
    }
    void load(PackageCode& package, const wire::Image& image) {
        const LockOf lock(mutex_);
        new_codes_.take_image(package, image, loaded(package, image));
    }
};

TEST_F(CandidatesTest, APackageIsListedByWhatOfItMayGo) {
    wire::Image image = image_of(1);
    PackageCode& plain = know({.name = "plain", .image = image});
    EXPECT_EQ(lists_of(plain), "slices forgettable ");
    plain.store->drop_slices();
    {
        const LockOf lock(mutex_);
        budgets_.count(plain);
    }
    EXPECT_EQ(lists_of(plain), "forgettable ");
    load(plain, image);
    EXPECT_EQ(lists_of(plain), "evictable idle ");
    PackageCode& pinned = know({.name = "pinned", .pinned = true, .image = image});
    load(pinned, image);
    EXPECT_EQ(lists_of(pinned), "slices ");
    EXPECT_EQ(lists_of(know({.name = "resident", .image = image}, true)), "");
    {
        const LockOf lock(mutex_);
        budgets_.uncount(plain);
    }
    EXPECT_EQ(lists_of(plain), "");
}

TEST_F(CandidatesTest, WhatHasStaticsIsNotIdleAndStaysOnceItWasCalled) {
    wire::Image image = image_of(1);
    image.data_bytes = 16;
    for (const bool was_called : {false, true}) {
        PackageCode& package = know({.name = was_called ? "called" : "loaded", .image = image});
        load(package, image);
        EXPECT_EQ(lists_of(package), "evictable ");
        package.called = was_called;
        const LockOf lock(mutex_);
        known_.take_back_entries(package);
        package.release_code();
        package.store->drop_slices();
        budgets_.count(package);
        EXPECT_EQ(lists_of(package), was_called ? "" : "forgettable ");
    }
}

// ---- Evictor

using EvictorTest = KeepingTest;

TEST_F(EvictorTest, SlicesOfTheOneUnusedForLongestGoFirst) {
    const auto older = store("older", 6000), newer = store("newer", 6000);
    ASSERT_TRUE(add(older) && add(newer));
    call(*older);
    options_.code_bytes_max = 9000;
    trim();
    EXPECT_NE(older->stored_slice(0), nullptr);
    EXPECT_EQ(newer->stored_slice(0), nullptr);
    EXPECT_NE(known(*newer), nullptr) << "it stays known: its slices are asked for again";
}

TEST_F(EvictorTest, WhatACallWaitsForKeepsItsSlices) {
    const auto awaited = store("awaited", 6000), other = store("other", 6000);
    ASSERT_TRUE(add(awaited) && add(other));
    call(*other);
    known(*awaited)->await();
    options_.code_bytes_max = 1;
    trim();
    EXPECT_NE(awaited->stored_slice(0), nullptr);
    EXPECT_EQ(other->stored_slice(0), nullptr);
}

TEST_F(EvictorTest, WhatIsReservedHasToFit) {
    const auto large = store("large");
    ASSERT_TRUE(add(large));
    PackageCode& package = *known(*large);
    const LockOf lock(mutex_);
    package.pinned = true;
    const Status refused = evictor_.reserve(package, options_.code_bytes_max + 1, 0);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::overloaded);
    EXPECT_EQ(budgets_.held(Budget::pinned), 0U);
    EXPECT_TRUE(evictor_.reserve(package, 1000, 0));
    EXPECT_EQ(budgets_.held(Budget::pinned), 1000U);
}

// ---- Uses

using UsesTest = KeepingTest;

TEST_F(UsesTest, WhatTheLeaderRunsIsInUseUntilItLeavesOrIsKept) {
    const auto added = store("sum");
    ASSERT_TRUE(add(added));
    PackageCode& package = *known(*added);
    Function& function = *package.functions[0];
    const LockOf lock(mutex_);
    Leading& leader = uses_.leaders().add();
    (void)uses_.leaders().add();  // another engine's, which runs nothing
    EXPECT_EQ(uses_.enter_leading(leader, function), nullptr) << "it has no code";
    EXPECT_FALSE(uses_.is_running(package));
    const auto entry = reinterpret_cast<EntryPoint>(this);
    function.target = entry;
    EXPECT_EQ(uses_.enter_leading(leader, function), entry);
    EXPECT_TRUE(uses_.is_running(package));
    EXPECT_TRUE(package.called);
    Uses::leave_leading(leader);
    EXPECT_FALSE(uses_.is_running(package));
    ASSERT_EQ(uses_.enter_leading(leader, function), entry);
    EXPECT_EQ(Uses::keep_leading(leader), &package);
    EXPECT_EQ(Uses::keep_leading(leader), nullptr) << "it is counted as any other thread's";
    Uses::leave_leading(leader);
    EXPECT_TRUE(uses_.is_running(package));
    --package.running;
    EXPECT_FALSE(uses_.is_running(package));
    function.target = nullptr;
}

TEST_F(UsesTest, WhatWaitsIsBusyAndWhatIsQueuedForNobodyIsNot) {
    const auto added = store("sum");
    ASSERT_TRUE(add(added));
    PackageCode& package = *known(*added);
    const LockOf lock(mutex_);
    EXPECT_FALSE(uses_.is_busy(package));
    compile_queue_.push(package);
    EXPECT_FALSE(uses_.is_used(package)) << "nobody waits for it";
    package.await();
    EXPECT_TRUE(uses_.is_used(package));
    EXPECT_TRUE(uses_.is_busy(package));
    EXPECT_TRUE(uses_.needs_slices(package));
    compile_queue_.leave(package);
    EXPECT_FALSE(uses_.is_used(package));
    EXPECT_TRUE(uses_.is_busy(package));
    package.awaited_until = 0;
    package.loading = true;
    EXPECT_TRUE(uses_.is_used(package));
    package.loading = false;
}

}  // namespace
}  // namespace rove::code
