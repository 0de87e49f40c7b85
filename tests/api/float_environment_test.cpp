// Floating-point settings that a function makes in its thread apply to that function alone.
#include <pthread.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cfenv>
#include <cfloat>
#include <csignal>
#include <future>
#include <string>
#include <thread>

#include "../node/soon.hpp"
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
    (void)feenableexcept(FE_ALL_EXCEPT);
}
int flags() {
    return std::fetestexcept(FE_ALL_EXCEPT);
}
#if defined(__x86_64__)
// As _MM_SET_EXCEPTION_MASK does: the x87's word says nothing of it.
void vectors_trap() {
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x1F80U);
}
// The next x87 instruction that looks would trap, whatever it computes.
void leaves_a_trap_for_the_next() {
    constexpr std::uint16_t kAllTrap = 0x0340;
    const volatile double raised = third_of_long();
    (void)raised;
    __asm__ volatile("fldcw %0" : : "m"(kAllTrap));
}
void drops_denormals() {
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040U);
}
#endif
#if defined(__x86_64__)
std::atomic<pthread_t> who_waits{};
std::atomic<std::uint32_t> vectors_seen{0};
void see_vectors(int, siginfo_t*, void* context) {
    vectors_seen = static_cast<ucontext_t*>(context)->uc_mcontext.fpregs->mxcsr;
}
void look_at_who_waits() {
    (void)soon([] {
        pthread_kill(who_waits, SIGUSR1);
        return vectors_seen != 0;
    });
}
bool traps_and_waits(Here& here) {
    traps();
    who_waits = pthread_self();
    here.caller().sync(fn<look_at_who_waits>);
    return fegetexcept() == FE_ALL_EXCEPT;
}
#endif
void throws_rounding_up() {
    rounds_up();
    throw std::string("rounding up");
}

// Rounds up, and calls its caller, which calls third() here, on top of it.
double third_of_other(Here& here) {
    return here.caller().sync(fn<third>);
}
double third_of_long_of_other(Here& here) {
    return here.caller().sync(fn<third_of_long>);
}
bool goes_on_rounding_up(Here& here) {
    rounds_up();
    const double of_other = here.caller().sync(fn<third_of_other>);
    return of_other != third();
}

std::atomic<int> at_gate{0};
std::atomic<bool> gate_is_open{false};
void wait_at_gate() {
    ++at_gate;
    (void)soon([] { return gate_is_open.load(); });
}
// Another thread is made in its thread's place, by that thread.
void waits_quietly_rounding_up(Here& here) {
    rounds_up();
    const NoNesting quiet;
    here.caller().sync(fn<wait_at_gate>);
}

class FloatEnvironment : public OnFabrics {
protected:
    [[nodiscard]] NodeOptions with_one_thread() const {
        NodeOptions one_thread = options(true);
        one_thread.threads = 1;  // which all functions run on
        return one_thread;
    }
    Node serves_{started(with_one_thread())}, calls_{started(options())};
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
    const double right = third(), small = half_of_smallest();
    there_.sync(fn<traps>);
    EXPECT_GT(there_.sync(fn<divided_by_zero>), DBL_MAX);
    EXPECT_EQ(there_.sync(fn<third>), right);
    EXPECT_EQ(there_.sync(fn<half_of_smallest>), small);
}

#if defined(__x86_64__)
TEST_P(FloatEnvironment, NothingIsRaisedWhereAFunctionBegins) {
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(there_.sync(fn<flags>), 0);
        (void)there_.sync(fn<third>);
    }
}

TEST_P(FloatEnvironment, TrapsThatShowInOneWordOnlyAreTheFunctionsOwn) {
    const double right = third(), right_of_long = third_of_long();
    there_.sync(fn<vectors_trap>);
    EXPECT_EQ(there_.sync(fn<third>), right);
    there_.sync(fn<leaves_a_trap_for_the_next>);
    EXPECT_EQ(there_.sync(fn<third_of_long>), right_of_long);
}

TEST_P(FloatEnvironment, DenormalsAreKeptForOthers) {
    there_.sync(fn<drops_denormals>);
    EXPECT_GT(there_.sync(fn<half_of_smallest>), 0);
}
#endif

TEST_P(FloatEnvironment, AFunctionOnTopOfOneThatWaitsHasTheStandardOne) {
    EXPECT_TRUE(there_.sync(fn<goes_on_rounding_up>))
        << "what ran while it waited rounded up, or the function did not go on so";
    EXPECT_EQ(there_.sync(fn<third>), third());
}

// A program's own thread, which serves while it waits.
#if defined(__x86_64__)
// A rounding in the node's own code would end the process.
TEST_P(FloatEnvironment, TheNodeDoesNotTrapWhereAFunctionThatTrapsWaits) {
    struct sigaction looks{}, before{};
    looks.sa_sigaction = see_vectors;
    looks.sa_flags = SA_SIGINFO | SA_RESTART;
    ASSERT_EQ(sigaction(SIGUSR1, &looks, &before), 0);
    vectors_seen = 0;
    EXPECT_TRUE(peer().sync(fn<traps_and_waits>)) << "it has its own again";
    EXPECT_EQ(vectors_seen & 0x7F80U, 0x1F80U);
    ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}
#endif

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

// What runs in it while it waits raises what this thread traps. Afterwards the thread has its traps, and nothing is raised.
TEST_P(FloatEnvironment, AThreadThatTrapsMayWait) {
    const double right = third(), right_of_long = third_of_long();
    (void)there_.sync(fn<third_of_other>);
    std::fenv_t before;
    (void)std::fegetenv(&before);
    (void)std::feclearexcept(FE_ALL_EXCEPT);
    (void)feenableexcept(FE_UNDERFLOW | FE_INEXACT);
    const double called = there_.sync(fn<third_of_other>), called_long = there_.sync(fn<third_of_long_of_other>);
    const int trapped = fegetexcept(), raised = std::fetestexcept(FE_UNDERFLOW | FE_INEXACT);
    (void)std::fesetenv(&before);
    EXPECT_EQ(called, right);
    EXPECT_EQ(called_long, right_of_long);
    EXPECT_EQ(trapped, FE_UNDERFLOW | FE_INEXACT);
    EXPECT_EQ(raised, 0);
}

TEST_P(FloatEnvironment, OnePostOfABatchSetsNothingForTheNext) {
    const Package rounding = Package::open(package("rounding.c"));
    const Entry take = rounding.entry("take_third"), tell = rounding.entry("tell_thirds");
    (void)there_.call(take, {}).get();  // its code has come
    Batch batch = there_.batch(take, 1);
    (void)batch.add();
    (void)batch.add();
    batch.post();
    std::array<double, 2> thirds{};
    const auto told = there_.call(tell, {}).get();
    ASSERT_EQ(told.size(), sizeof thirds);
    std::memcpy(thirds.data(), told.data(), sizeof thirds);
    EXPECT_EQ(thirds[0], third());
    EXPECT_EQ(thirds[1], third());
}

TEST_P(FloatEnvironment, CallbacksSetNothingForFunctions) {
    const Peer other = serves_.connect(server_->address());
    for (int i = 0; i < 3; ++i) {
        std::promise<void> told;
        call_back(other, [&told] {
            rounds_up();
            told.set_value();
        });
        told.get_future().wait();
        EXPECT_EQ(there_.sync(fn<third>), third());
    }
}

// Threads begin with the arithmetic of the thread that makes them.
TEST_P(FloatEnvironment, ThreadsOfANodeInheritNone) {
    std::unique_ptr<Node> made, made_by_others;
    std::thread([&] {
        rounds_up();
        made = std::make_unique<Node>(started(with_one_thread()));
        std::feclearexcept(FE_ALL_EXCEPT);
#if defined(__x86_64__)
        drops_denormals();
#endif
        made_by_others = std::make_unique<Node>(started(with_one_thread()));
    }).join();
    for (const auto& node : {made.get(), made_by_others.get()}) {
        const Peer there = calls_.connect(node->address());
        EXPECT_EQ(there.sync(fn<third>), third());
        EXPECT_GT(there.sync(fn<half_of_smallest>), 0);
    }
}

TEST_P(FloatEnvironment, ThreadsMadeForOthersThatWaitInheritNone) {
    at_gate = 0;
    gate_is_open = false;
    NodeOptions two = options(true);
    two.threads = 2;
    const Node serves(started(two));
    NodeOptions wide = options();
    wide.threads = 4;  // what waits at the gate stays on a thread of its own
    Node calls(started(wide));
    const Peer there = calls.connect(serves.address());
    std::vector<Call<void>> waiting;
    for (int i = 0; i < 2; ++i) waiting.push_back(there.async(fn<waits_quietly_rounding_up>));
    EXPECT_TRUE(soon([] { return at_gate == 2; }));
    Node others(started(options()));
    EXPECT_EQ(others.connect(serves.address()).sync(fn<third>), third());
    gate_is_open = true;
    for (auto& each : waiting) each.get();
}

}  // namespace
}  // namespace rove::test
