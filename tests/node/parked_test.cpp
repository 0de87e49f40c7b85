// A call that waits at the head of a mailbox, by itself.
#include "peer/parked.hpp"

#include <gtest/gtest.h>

#include <array>

namespace rove::test {
namespace {

constexpr auto kSecond = std::chrono::seconds(1);

FunctionId function(std::uint8_t number) {
    std::array<std::byte, sizeof(FunctionId)> bytes{std::byte{number}};
    return FunctionId::from(bytes);
}

class ParkedTest : public testing::Test {
protected:
    // What an error that comes then begins with.
    [[nodiscard]] std::string expired(TimePoint at) const {
        const std::optional<Error> why = parked_.expired(at);
        return why ? why->message() : "";
    }
    Parked parked_;
    const TimePoint now_ = Clock::now();
};

TEST_F(ParkedTest, ItsCodeIsAskedForOnce) {
    EXPECT_TRUE(parked_.wait_for_code(now_));
    EXPECT_FALSE(parked_.wait_for_code(now_ + kSecond));
    parked_.was_asked(3, 4);
    EXPECT_TRUE(parked_.waits_for_code_of(3));
    EXPECT_FALSE(parked_.waits_for_code_of(4));
    EXPECT_EQ(parked_.origin(), 4U);
}

TEST_F(ParkedTest, CodeThatFoundNoRoomIsAskedForAgainLater) {
    ASSERT_TRUE(parked_.wait_for_code(now_));
    parked_.was_dropped(now_);
    EXPECT_FALSE(parked_.wait_for_code(now_ + kAskAgainAfter / 2));
    EXPECT_TRUE(parked_.wait_for_code(now_ + kAskAgainAfter));
    EXPECT_FALSE(parked_.wait_for_code(now_ + 2 * kAskAgainAfter)) << "it is on its way again";
}

TEST_F(ParkedTest, CodeThatIsArrivingIsWaitedFor) {
    ASSERT_TRUE(parked_.wait_for_code(now_));
    parked_.is_arriving(now_ + kCodeWaitMax);
    EXPECT_EQ(expired(now_ + 2 * kCodeWaitMax), "");
    EXPECT_NE(expired(now_ + 2 * kCodeWaitMax + kSecond), "") << "no more of it has come";
    parked_.has_come(now_ + kCodeWaitMax);
    parked_.is_arriving(now_ + 2 * kCodeWaitMax);
    EXPECT_NE(expired(now_ + 2 * kCodeWaitMax + kSecond), "") << "it came, went, and comes again";
}

// It came, and went before the call was looked at, because others' came.
TEST_F(ParkedTest, CodeThatMadeWayIsAskedForAgain) {
    ASSERT_TRUE(parked_.wait_for_code(now_));
    parked_.has_come(now_ + kSecond);
    EXPECT_FALSE(parked_.wait_for_code(now_ + kSecond));
    EXPECT_TRUE(parked_.wait_for_code(now_ + kSecond + kAskAgainAfter));
    EXPECT_NE(expired(now_ + 2 * kCodeWaitMax).find("was evicted"), std::string::npos);
}

// A call that waited for something else had its code then: what was asked before that is over.
TEST_F(ParkedTest, CodeThatGoesWhileTheCallWaitsForSomethingElseIsAskedForAnew) {
    ASSERT_TRUE(parked_.wait_for_code(now_));
    parked_.wait_for_thread(std::nullopt);
    EXPECT_TRUE(parked_.wait_for_code(now_ + 2 * kCodeWaitMax));
    EXPECT_EQ(expired(now_ + 3 * kCodeWaitMax), "") << "it has waited for five seconds since";
    parked_.wait_for_cache(now_ + 3 * kCodeWaitMax);
    EXPECT_TRUE(parked_.wait_for_code(now_ + 4 * kCodeWaitMax));
}

TEST_F(ParkedTest, SaysWhatItWaitedForTooLong) {
    ASSERT_TRUE(parked_.wait_for_code(now_));
    EXPECT_EQ(expired(now_ + kCodeWaitMax), "");
    EXPECT_NE(expired(now_ + kCodeWaitMax + kSecond).find("its code did not come"), std::string::npos);
    parked_.wait_for_cache(now_ + kCodeWaitMax);
    EXPECT_EQ(expired(now_ + kCodeWaitMax + kCompileWaitMax), "");
    parked_.wait_for_cache(now_ + kCompileWaitMax);  // still
    EXPECT_NE(expired(now_ + kCodeWaitMax + kCompileWaitMax + kSecond).find("not ready within 60 s"),
              std::string::npos);
    parked_.wait_for_thread(std::nullopt);
    EXPECT_EQ(expired(now_ + 10 * kCompileWaitMax), "") << "the end of a function tells";
    parked_.refuse(Error(ErrorCode::unsupported, "nobody has it"));
    EXPECT_EQ(expired(now_ + 10 * kCompileWaitMax), "") << "it is refused already";
    ASSERT_NE(parked_.why_not(), nullptr);
    EXPECT_EQ(parked_.why_not()->message(), "nobody has it");
}

TEST_F(ParkedTest, IsHeldUntilThenWhereTooManyWaitQuietly) {
    parked_.wait_for_thread(now_ + kSecond);
    EXPECT_TRUE(parked_.waits_for_thread());
    EXPECT_EQ(parked_.held_until(), now_ + kSecond);
    parked_.wait_for_cache(now_);
    EXPECT_EQ(parked_.held_until(), std::nullopt);
}

TEST_F(ParkedTest, AnAnswerIsAboutItsFunctionOrTheHandleOfOneThatIsNotKnown) {
    parked_.handle = 5;
    EXPECT_TRUE(parked_.is_about({}, 5));
    EXPECT_FALSE(parked_.is_about({}, 6));
    EXPECT_TRUE(parked_.is_about(function(1), 5));
    parked_.function = function(2);
    EXPECT_FALSE(parked_.is_about(function(1), 5));
    EXPECT_TRUE(parked_.is_about(function(2), 6));
}

}  // namespace
}  // namespace rove::test
