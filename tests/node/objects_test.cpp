// Objects that functions use by their names, by themselves.
#include "services/objects.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "rove/detail/shared_type.hpp"

namespace rove::test {
namespace {

struct Shop {
    double prices[3];
};

class ObjectsTest : public testing::Test {
protected:
    // What find() says of an object that it does not give; empty: it gives one.
    [[nodiscard]] std::string why_not(std::string_view name, std::string_view type) const {
        const Result<void*> found = objects_.find(name, type);
        if (found) return {};
        EXPECT_EQ(found.error().code(), ErrorCode::invalid);
        return found.error().message();
    }
    Objects objects_{[] { return std::string("node 3"); }};
    Shop shop_{};
    int number_ = 0;
};

TEST_F(ObjectsTest, ANameIsOneThatCanBeAskedFor) {
    int number = 0;
    for (const std::string& name : {std::string(), std::string("a\0b", 3)}) {
        const Status shared = objects_.share(name, &number, "int");
        ASSERT_FALSE(shared);
        EXPECT_EQ(shared.error().code(), ErrorCode::invalid);
    }
}

TEST_F(ObjectsTest, AreFoundByTheirNames) {
    ASSERT_TRUE(objects_.share("shop", &shop_, "Shop"));
    ASSERT_TRUE(objects_.share("number", &number_, "int"));
    EXPECT_EQ(objects_.find("shop", "Shop").value(), &shop_);
    EXPECT_EQ(objects_.find("number", "int").value(), &number_);
}

TEST_F(ObjectsTest, SayWhichThereAre) {
    EXPECT_EQ(why_not("shop", "Shop"), "node 3 shares no object 'shop'; it shares none");
    ASSERT_TRUE(objects_.share("shop", &shop_, "Shop"));
    ASSERT_TRUE(objects_.share("number", &number_, "int"));
    EXPECT_EQ(why_not("shpo", "Shop"), "node 3 shares no object 'shpo'; there are: number, shop");
}

TEST_F(ObjectsTest, HaveOneTypeEach) {
    using Here = detail::Shared<Shop, sizeof(Shop), alignof(Shop)>;
    using Before = detail::Shared<Shop, sizeof(Shop) + 8, alignof(Shop)>;
    ASSERT_TRUE(objects_.share("shop", &shop_, typeid(Here).name()));
    EXPECT_EQ(objects_.find("shop", typeid(Here).name()).value(), &shop_);
    const std::string why = why_not("shop", typeid(Before).name());
    EXPECT_NE(why.find("Shop, 24, 8) and not ("), std::string::npos) << why;
    EXPECT_NE(why.find("Shop, 32, 8)"), std::string::npos) << why;
    // As C programs name types.
    ASSERT_TRUE(objects_.share("number", &number_, "a number"));
    EXPECT_NE(why_not("number", "int").find("(a number) and not (int)"), std::string::npos);
}

TEST_F(ObjectsTest, KeepTheirNamesUntilTheyAreUnshared) {
    ASSERT_TRUE(objects_.share("shop", &shop_, "Shop"));
    const Status again = objects_.share("shop", &number_, "int");
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code(), ErrorCode::invalid);
    EXPECT_EQ(again.error().message(), "node 3 shares another object as 'shop' already");
    EXPECT_EQ(objects_.find("shop", "Shop").value(), &shop_) << "the one that was first";
    objects_.unshare("shop");
    objects_.unshare("shop");  // which is not there any more
    EXPECT_NE(why_not("shop", "Shop"), "");
    ASSERT_TRUE(objects_.share("shop", &number_, "int"));
    EXPECT_EQ(objects_.find("shop", "int").value(), &number_);
}

TEST_F(ObjectsTest, AreFoundWhileOthersAreShared) {
    ASSERT_TRUE(objects_.share("shop", &shop_, "Shop"));
    std::atomic<bool> ended{false};
    std::thread shares([&] {
        for (int i = 0; i < 1000; ++i) {
            EXPECT_TRUE(objects_.share("number", &number_, "int"));
            objects_.unshare("number");
        }
        ended = true;
    });
    while (!ended) EXPECT_EQ(objects_.find("shop", "Shop").value(), &shop_);
    shares.join();
}

}  // namespace
}  // namespace rove::test
