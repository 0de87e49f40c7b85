// A ring whose reader is refused memory: frames that are in use stay in use.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "../watched_new.hpp"
#include "fabric/ring.hpp"

namespace {

bool is_refused = false;

}  // namespace

void rove::test::asked_for(std::size_t /*bytes*/) {
    if (is_refused) throw std::bad_alloc();
}

namespace rove::fabric {
namespace {

// hold() is called where a function runs already and no call can fail any more.
TEST(RingWithoutMemory, AllFramesInUseKeepTheirLines) {
    constexpr std::uint64_t kKey = 0x1122334455667700, kFrames = 100;
    const auto region = std::make_unique<Region>();
    RingWriter writer{region->rings[0], &region->credits[0], kKey};
    RingReader reader{region->rings[0], kKey};
    for (std::uint64_t i = 0; i < kFrames; ++i) {
        ASSERT_NE(writer.reserve(wire::kHeaderBytes), nullptr);
        writer.publish({.kind = wire::Kind::call, .handle = 7, .generation = 9, .node = 1, .call = 5});
    }
    std::vector<std::uint64_t> held(kFrames);
    wire::Frame taken;
    is_refused = true;
    for (std::uint64_t& each : held) {
        if (reader.next(taken) != RingReader::Arrival::frame) break;
        each = reader.hold();
    }
    is_refused = false;
    EXPECT_EQ(reader.tail(), kFrames);
    for (std::uint64_t i = 0; i < kFrames; ++i) {
        EXPECT_LE(reader.given_back(), i) << "lines of a frame in use were given back";
        reader.let_go(held[i]);
    }
    EXPECT_EQ(reader.given_back(), kFrames);
}

}  // namespace
}  // namespace rove::fabric
