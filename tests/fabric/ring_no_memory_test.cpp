// Links that are refused memory: frames that are in use stay in use, and a frame that was published is sent.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "../watched_new.hpp"
#include "fabric/fabric.hpp"
#include "fabric/local.hpp"
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

// A frame that follows another one at once waits for a moment to be sent with more (kCoalesceFor).
TEST(StreamWithoutMemory, AFrameThatIsPublishedIsSent) {
    constexpr int kFrames = 20;
    const auto near = std::move(*open_local_fabric({.direct = false})),
               far = std::move(*open_local_fabric({.direct = false}));
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    const auto from = std::move(*near->open_stream(ends[0], {.incoming = 1, .outgoing = 2})),
               to = std::move(*far->open_stream(ends[1], {.incoming = 2, .outgoing = 1}));
    ASSERT_TRUE(from->connect({}) && to->connect({}));
    int published = 0;
    is_refused = true;
    try {
        for (; published < kFrames; ++published) {
            if (from->reserve(Traffic::calls, wire::kHeaderBytes) == nullptr) break;
            from->publish(Traffic::calls, {.kind = wire::Kind::call, .node = 1});
        }
    } catch (const std::bad_alloc&) {
    }
    is_refused = false;
    EXPECT_EQ(published, kFrames);
    int taken = 0;
    for (int turn = 0; turn < 1000 && taken < kFrames; ++turn) {
        near->progress();
        far->progress();
        for (wire::Frame frame; to->next(Traffic::calls, frame); to->release(Traffic::calls)) ++taken;
    }
    EXPECT_EQ(taken, kFrames);
}

}  // namespace
}  // namespace rove::fabric
