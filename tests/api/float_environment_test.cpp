// What a function sets of its thread's floating-point arithmetic is its own.
#include <cfenv>
#include <cfloat>
#include <string>

#include "nodes.hpp"

namespace rove::test {
namespace {

volatile double one = 1, three = 3, smallest = DBL_MIN;
volatile long double long_one = 1, long_three = 3;

double third() {
    return one / three;
}
double third_of_long() {
    return static_cast<double>(long_one / long_three * 1e30L - 3.3333333333e29L);
}
double half_of_smallest() {
    return smallest / 2;
}
double divided_by_zero() {
    return one / 0.0;
}

void rounds_up() {
    (void)std::fesetround(FE_UPWARD);
}
void traps() {
    (void)feenableexcept(FE_DIVBYZERO | FE_INVALID);
}
// Those that ordinary sums meet: whoever computes anything afterwards runs into them.
void traps_what_is_common() {
    (void)feenableexcept(FE_UNDERFLOW | FE_INEXACT | FE_OVERFLOW);
}
#if defined(__x86_64__)
void drops_denormals() {
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040U);
}
#endif
void throws_rounding_up() {
    rounds_up();
    throw std::string("rounding up");
}

// Rounds up, and is back at its caller's meanwhile, which calls third() here, on top of it.
double third_of_other(Here& here) {
    return here.caller().sync(fn<third>);
}
bool goes_on_rounding_up(Here& here) {
    rounds_up();
    const double of_other = here.caller().sync(fn<third_of_other>);
    return of_other != third();
}

class FloatEnvironment : public OnFabrics {
protected:
    [[nodiscard]] NodeOptions with_one_thread() const {
        NodeOptions one_thread = options(true);
        one_thread.threads = 1;  // which all functions run on
        return one_thread;
    }
    Node serves_{with_one_thread()}, calls_{options()};
    Peer there_ = calls_.connect(serves_.address());
};
ROVE_ON_FABRICS(FloatEnvironment);

TEST_P(FloatEnvironment, RoundingIsTheFunctionsOwn) {
    const double right = third(), right_of_long = third_of_long();
    ASSERT_EQ(there_.sync(fn<third>), right);
    there_.sync(fn<rounds_up>);
    EXPECT_EQ(there_.sync(fn<third>), right);
    EXPECT_EQ(there_.sync(fn<third_of_long>), right_of_long);
    EXPECT_ANY_THROW(there_.sync(fn<throws_rounding_up>));
    EXPECT_EQ(there_.sync(fn<third>), right);
}

TEST_P(FloatEnvironment, TrapsAreTheFunctionsOwn) {
    there_.sync(fn<traps>);
    EXPECT_GT(there_.sync(fn<divided_by_zero>), DBL_MAX);
}

TEST_P(FloatEnvironment, TrapsOfCommonThingsEndNoNode) {
    there_.sync(fn<traps_what_is_common>);
    EXPECT_EQ(there_.sync(fn<third>), third());
    EXPECT_GT(there_.sync(fn<half_of_smallest>), 0);
}

// A node's threads are made by a program that has set its own.
TEST_P(FloatEnvironment, ANodesThreadsDoNotComputeAsWhoMadeThem) {
    const double right = third();
    std::fenv_t before;
    (void)std::fegetenv(&before);
    rounds_up();
    const Node serves(with_one_thread());
    const Peer there = calls_.connect(serves.address());
    (void)std::fesetenv(&before);
    EXPECT_EQ(there.sync(fn<third>), right);
}

#if defined(__x86_64__)
TEST_P(FloatEnvironment, DenormalsAreKeptForOthers) {
    there_.sync(fn<drops_denormals>);
    EXPECT_GT(there_.sync(fn<half_of_smallest>), 0);
}
#endif

TEST_P(FloatEnvironment, AFunctionOnTopOfOneThatWaitsHasTheStandardOne) {
    EXPECT_TRUE(there_.sync(fn<goes_on_rounding_up>))
        << "what ran meanwhile rounded up, or the function did not go on so";
    EXPECT_EQ(there_.sync(fn<third>), third());
}

// A program's own thread, which serves while it waits.
TEST_P(FloatEnvironment, AThreadThatWaitsKeepsItsOwn) {
    std::fenv_t before;
    (void)std::fegetenv(&before);
    rounds_up();
    const double own = third();
    const double called = there_.sync(fn<third_of_other>);
    const double after = third();
    (void)std::fesetenv(&before);
    EXPECT_EQ(called, third()) << "it was called here, where its caller rounds up";
    EXPECT_NE(called, own);
    EXPECT_EQ(after, own);
}

}  // namespace
}  // namespace rove::test
