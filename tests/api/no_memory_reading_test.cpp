// A function that reads its arguments while they arrive, and is refused memory in between.
#include <atomic>
#include <memory>
#include <vector>

#include "../node/soon.hpp"
#include "engine/gathering.hpp"
#include "engine/here.hpp"
#include "node/core.hpp"
#include "nodes.hpp"
#include "without_memory.hpp"

namespace rove::test {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);

std::atomic<NodeCore*> core_that_was_called{nullptr};
void note_core(Here& here) {
    core_that_was_called = &here.raw()->node();
}
int add(int a, int b) {
    return a + b;
}

// Memory is refused to the thread that reads an argument which is still arriving, from the moment at which it has a place for it.
std::atomic<bool> refuses_reader{false};
template <typename T>
struct RefusesReader : std::allocator<T> {
    template <typename U>
    struct rebind {
        using other = RefusesReader<U>;
    };
    [[nodiscard]] T* allocate(std::size_t count) {
        T* const place = std::allocator<T>::allocate(count);
        if (refuses_reader.exchange(false)) refused_here = true;
        return place;
    }
};
std::atomic<int> runs_with_numbers{0};
std::size_t count_numbers(const std::vector<int, RefusesReader<int>>& numbers) {
    refused_here = false;
    ++runs_with_numbers;
    return numbers.size();
}

TEST(WithoutMemoryWhileReading, AFunctionWhoseArgumentsArriveRunsOrItsCallFails) {
    (void)scratch();
    constexpr std::size_t kNumbers = 6'000'000;
    const Node server({.listen = "unix:" + (scratch() / "arrive.sock").string(), .log = "off"});
    Node client(NodeOptions{.log = "off"}), other(NodeOptions{.log = "off"});
    const Peer peer = client.connect(server.address());
    const Peer beside = other.connect(server.address());
    beside.sync(within(kPatience), fn<note_core>);
    NodeCore& core = *core_that_was_called;
    const std::vector<int, RefusesReader<int>> numbers(kNumbers, 7);
    EXPECT_EQ(peer.sync(within(kPatience), fn<count_numbers>, std::vector<int, RefusesReader<int>>()), 0U);
    const std::uint64_t before = core.first_engine().gatherings().done();
    for (int refused = 1; refused <= 8; ++refused) {
        runs_with_numbers = 0;
        refused_in = refused;
        refuses_reader = true;
        bool succeeded = false;
        try {
            succeeded = peer.sync(within(kPatience), fn<count_numbers>, numbers) == kNumbers;
            EXPECT_TRUE(succeeded) << refused;
        } catch (const Error&) {  // it had no memory
        }
        refused_in = 0;
        refuses_reader = false;
        EXPECT_EQ(runs_with_numbers, succeeded ? 1 : 0) << refused;
        EXPECT_EQ(beside.sync(within(kPatience), fn<add>, refused, 2), refused + 2);
        EXPECT_TRUE(soon([&core] { return core.first_engine().gatherings().running() == 0; })) << refused;
    }
    EXPECT_GT(core.first_engine().gatherings().done(), before) << "none was read as it arrived";
}

}  // namespace
}  // namespace rove::test
