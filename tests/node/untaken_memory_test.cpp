// Allocations of which nobody waits for the end any more, by themselves.
#include "peer/untaken_memory.hpp"

#include <gtest/gtest.h>

#include <array>

namespace rove::test {
namespace {

// Addresses stand for peers: nothing is read there.
std::array<std::byte, 2> places;
const auto* const kOne = reinterpret_cast<const PeerState*>(&places[0]);
const auto* const kOther = reinterpret_cast<const PeerState*>(&places[1]);

TEST(UntakenMemory, IsTakenOnceAndFromItsOwnPeer) {
    UntakenMemory memory;
    memory.expect({3, 1}, kOne);
    EXPECT_FALSE(memory.take({3, 1}, kOther)) << "it would be freed on another node";
    EXPECT_FALSE(memory.take({3, 2}, kOne)) << "a later call in the same place";
    EXPECT_TRUE(memory.take({3, 1}, kOne));
    EXPECT_FALSE(memory.take({3, 1}, kOne));
}

TEST(UntakenMemory, OfAnEndedLinkIsForgotten) {
    UntakenMemory memory;
    memory.expect({1, 1}, kOne);
    memory.expect({2, 1}, kOther);
    memory.forget(kOne);
    EXPECT_FALSE(memory.take({1, 1}, kOne)) << "who is at that address now may be somebody else";
    EXPECT_TRUE(memory.take({2, 1}, kOther));
}

TEST(UntakenMemory, IsBounded) {
    UntakenMemory memory;
    for (std::uint32_t i = 0; i <= UntakenMemory::kMax; ++i) memory.expect({0, i}, kOne);
    EXPECT_TRUE(memory.take({0, UntakenMemory::kMax - 1}, kOne));
    EXPECT_FALSE(memory.take({0, UntakenMemory::kMax}, kOne)) << "more than may be";
    memory.expect({0, UntakenMemory::kMax}, kOne);
    EXPECT_TRUE(memory.take({0, UntakenMemory::kMax}, kOne)) << "there is room again";
}

}  // namespace
}  // namespace rove::test
