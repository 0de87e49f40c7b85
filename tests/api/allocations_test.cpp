// What a call must not do: ask for memory.
#include <atomic>
#include <cstdlib>

#include "../watched_new.hpp"
#include "nodes.hpp"

namespace {
std::atomic<bool> counting{false};
std::atomic<std::size_t> allocations{0};
// Only the threads that a call passes through are counted: a node's compiler thread warms itself up meanwhile.
thread_local bool on_the_way = false;
}  // namespace

void rove::test::asked_for(std::size_t) {
    if (on_the_way && counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}

namespace rove::test {

using Result = std::array<char, 64>;
Result sixty_four(int n) {
    on_the_way = true;
    Result result{};
    result[0] = static_cast<char>(n);
    return result;
}

class Allocations : public OnFabrics {};
INSTANTIATE_TEST_SUITE_P(Fabrics, Allocations, testing::Values(FabricChoice::shm), fabric_name);

// Client and node are both in this process: the function marks its thread, the test its own.
TEST_P(Allocations, NonePerCallForResultsOfUpTo64Bytes) {
    on_the_way = true;
    for (int i = 0; i < 1000; ++i) (void)peer().sync(fn<sixty_four>, i);
    counting = true;
    for (int i = 0; i < 1000; ++i) {
        const Result result = peer().sync(fn<sixty_four>, i);
        if (result[0] != static_cast<char>(i)) std::abort();
    }
    counting = false;
    const std::size_t sync = allocations.exchange(0);
    EXPECT_LT(sync, 10U) << "in 1000 calls";  // housekeeping may, a few times a second
    counting = true;
    for (int i = 0; i < 1000; ++i) {
        Call<Result> call = peer().async(fn<sixty_four>, i);
        (void)call.get();
    }
    counting = false;
    EXPECT_LT(allocations.load(), 10U) << "in 1000 calls";
}

}  // namespace rove::test
