// Loads by itself: requests to load packages, and their answers.
#include "code/loads.hpp"

#include <new>

#include "loading_parts.hpp"

namespace rove::code {
namespace {

class LoadsTest : public LoadingTest {
protected:
    struct Answers {
        std::vector<std::string> errors;  // "": none
        LoadReport report;
    };
    [[nodiscard]] Loads::Done into(Answers& answers) {
        return [this, &answers](const Result<LoadReport>& loaded) {
            const LockOf held(mutex_);  // it is free
            answers.errors.push_back(loaded ? "" : loaded.error().message());
            if (loaded) answers.report = *loaded;
        };
    }
    [[nodiscard]] Status queue(const PackageCode& package, Loads::Done done, NodeId asker = kNoNode) {
        const LockOf lock(mutex_);
        return loads_.queue(*package.store, std::move(done), asker);
    }
    [[nodiscard]] bool do_next() {
        const LockOf lock(mutex_);
        return loads_.do_next();
    }
    [[nodiscard]] bool has_queued() {
        const LockOf lock(mutex_);
        return loads_.has_queued();
    }
    void expect_refused(const Status& status, const std::string& why) {
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().code(), ErrorCode::overloaded);
        EXPECT_TRUE(status.error().message().starts_with(why)) << status.error().message();
    }

    Interfaces interfaces_{lock_, symbols_, budgets_, evictor_};
    Loads loads_{{.lock = lock_,
                  .options = options_,
                  .known = known_,
                  .tiers = tiers_,
                  .interfaces = interfaces_,
                  .workers = workers_}};
    const std::vector<std::string> done_{""};
};

TEST_F(LoadsTest, WhatIsLoadedIsAnsweredOnce) {
    PackageCode& package = know(small("sum"));
    Answers answers;
    EXPECT_FALSE(do_next());
    ASSERT_TRUE(queue(package, into(answers)));
    EXPECT_TRUE(has_queued());
    EXPECT_FALSE(package.loaded()) << "the worker does it";
    EXPECT_TRUE(do_next());
    EXPECT_TRUE(package.loaded());
    EXPECT_FALSE(package.called);
    EXPECT_EQ(answers.errors, done_);
    EXPECT_EQ(ready_, std::vector<Digest>{package.store->digest()});
    EXPECT_FALSE(has_queued());
    EXPECT_FALSE(do_next());
    EXPECT_EQ(answers.errors, done_);
}

TEST_F(LoadsTest, OneStaysQueuedWhileItsPackageIsLoadedAndHoldsUpNoOther) {
    PackageCode &slow = know(large("slow")), &quick = know(small("quick"));
    Answers of_slow, of_quick;
    ASSERT_TRUE(queue(slow, into(of_slow)) && queue(slow, into(of_slow)) && queue(quick, into(of_quick)));
    EXPECT_TRUE(do_next());
    EXPECT_TRUE(slow.loading);
    EXPECT_TRUE(do_next());
    EXPECT_EQ(of_quick.errors, done_);
    EXPECT_FALSE(do_next()) << "the others wait";
    EXPECT_TRUE(has_queued());
    {
        const LockOf lock(mutex_);
        EXPECT_TRUE(images_.do_next());
    }
    EXPECT_TRUE(of_slow.errors.empty());
    EXPECT_TRUE(do_next());
    EXPECT_TRUE(do_next());
    EXPECT_EQ(of_slow.errors, std::vector<std::string>(2));
}

TEST_F(LoadsTest, ItsCodeStaysUntilItIsLinked) {
    Contents contents = small("shelves");
    contents.exports = {"shelf"};
    contents.interface = true;
    contents.image->symbols.push_back({.kind = wire::Symbol::Kind::exported, .offset = 8});
    PackageCode& package = know(contents);
    Answers answers;
    int held = -1;
    ASSERT_TRUE(queue(package, [&](const Result<LoadReport>& loaded) {
        held = package.running;
        into(answers)(loaded);
    }));
    EXPECT_EQ(package.running, 1);
    options_.code_bytes_max = 1;
    trim();
    EXPECT_NE(package.store->stored_slice(0), nullptr);
    char before = 0;
    bring("shelf", &before);
    EXPECT_TRUE(do_next());
    EXPECT_EQ(held, 0) << "nothing holds it while the answer is given";
    EXPECT_EQ(answers.errors, done_);
    EXPECT_EQ(answers.report.replaced, std::vector<std::string>{"shelf (was of package shelves)"});
    ASSERT_TRUE(package.interface);
    EXPECT_EQ(symbols_.of_interfaces("shelf"), package.image->address(wire::Segment::block, 8));
}

TEST_F(LoadsTest, RequestsAreBoundedForEachPackageEachNodeAndInAll) {
    std::size_t queued = 0;
    const auto ignore = [](const Result<LoadReport>&) {};
    PackageCode& first = know(small("first"));
    for (; queued < CodeCache::kLoadsOfPackageMax; ++queued) ASSERT_TRUE(queue(first, ignore));
    expect_refused(queue(first, ignore), "3 loads of package first wait on node 7 already, the most that may");
    std::size_t packages = 0;
    const auto another = [&]() -> PackageCode& { return know(small("package" + std::to_string(packages++))); };
    for (std::size_t i = 0; i < CodeCache::kLoadsOfNodeMax; ++i, ++queued) ASSERT_TRUE(queue(another(), ignore, 5));
    expect_refused(queue(another(), ignore, 5), "16 packages that one node wants loaded wait on node 7 already");
    EXPECT_TRUE(queue(another(), ignore, 6)) << "the other nodes have room";
    for (++queued; queued < CodeCache::kLoadsMax; ++queued) ASSERT_TRUE(queue(another(), ignore));
    expect_refused(queue(another(), ignore, 7), "64 packages wait to be loaded on node 7 already, the most there may");
    EXPECT_TRUE(do_next());
    EXPECT_TRUE(queue(another(), ignore, 7)) << "one has been answered";
}

TEST_F(LoadsTest, OfAPackageThatIsNotKnownThereIsNone) {
    const LockOf lock(mutex_);
    const Status refused = loads_.queue(*store(small("sum")), [](const Result<LoadReport>&) {}, kNoNode);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::invalid);
    EXPECT_FALSE(loads_.has_queued());
}

TEST_F(LoadsTest, WhyNothingIsLoadedIsAnswered) {
    const auto manifest = add(manifest_of(*store(small("absent"))));
    ASSERT_TRUE(manifest);
    PackageCode &absent = *known(**manifest), &wrong = know(malformed("wrong"));
    Answers of_absent, of_wrong;
    ASSERT_TRUE(queue(absent, into(of_absent)) && queue(wrong, into(of_wrong)));
    EXPECT_TRUE(do_next());
    EXPECT_TRUE(do_next());
    EXPECT_EQ(of_absent.errors, std::vector<std::string>{tiers_.why_incomplete(*absent.store).message()});
    EXPECT_EQ(of_wrong.errors, std::vector<std::string>{kMalformed});
    EXPECT_EQ(absent.running + wrong.running, 0);
}

TEST_F(LoadsTest, AnAnswerThatFindsNoMemoryIsTriedOnceMore) {
    PackageCode& package = know(small("sum"));
    std::vector<std::string> errors;
    const auto fails = [&errors](std::size_t times) {
        return [&errors, times](const Result<LoadReport>& loaded) {
            errors.push_back(loaded ? "" : loaded.error().message());
            if (errors.size() <= times) throw std::bad_alloc();
        };
    };
    for (const std::size_t times : {1, 2}) {
        errors.clear();
        ASSERT_TRUE(queue(package, fails(times)));
        EXPECT_TRUE(do_next());
        EXPECT_EQ(errors, (std::vector<std::string>{"", "memory ran out"}));
        EXPECT_FALSE(has_queued());
    }
}

TEST_F(LoadsTest, NobodyIsAnsweredOnceTheCacheHasStopped) {
    PackageCode& package = know(small("sum"));
    Answers answers;
    ASSERT_TRUE(queue(package, into(answers)));
    {
        const LockOf lock(mutex_);
        lock_.stop();
    }
    EXPECT_TRUE(do_next());
    EXPECT_TRUE(answers.errors.empty());
}

}  // namespace
}  // namespace rove::code
