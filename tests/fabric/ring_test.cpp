// The ring and its frames, held against docs/frames.md and against bytes that are wrong.
#include "fabric/ring.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace rove::fabric {
namespace {

using wire::FrameHeader;
using wire::Kind;

class Ring : public testing::Test {
protected:
    // A frame with that much body, which begins with `word`.
    bool send(std::uint32_t body_bytes, std::uint64_t word = 42) {
        bool filler = false;
        std::byte* frame = writer.reserve(wire::kHeaderBytes + body_bytes, filler);
        if (frame == nullptr) return false;
        if (body_bytes >= sizeof word) std::memcpy(frame + wire::kHeaderBytes, &word, sizeof word);
        FrameHeader header = call;
        header.body_bytes = body_bytes;
        writer.publish(header);
        return true;
    }
    bool take() {
        if (reader.next(taken) != RingReader::Arrival::frame) return false;
        reader.release();
        if (reader.credit_due()) region->credits[0] = reader.tail();
        return true;
    }
    std::byte* ring() { return region->rings[0]; }

    std::unique_ptr<Region> region = std::make_unique<Region>();
    RingWriter writer{region->rings[0], &region->credits[0]};
    RingReader reader{region->rings[0]};
    wire::Frame taken;
    FrameHeader call{.signal = {.kind = Kind::call}, .handle = 7, .call = 5, .generation = 9, .node = 1};
};

TEST_F(Ring, TheDocumentsExample) {
    ASSERT_TRUE(send(8) && take() && send(8) && take() && send(8));
    const std::vector<int> expected = {3, 0, 0, 0, 1, 0, 2, 0, 8, 0, 0, 0, 7,  0, 0, 0, 5, 0, 0, 0,
                                       9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0};
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(expected[i], std::to_integer<int>(ring()[128 + i])) << i;
    ASSERT_TRUE(take());
    for (std::size_t i = 128; i < 136; ++i) EXPECT_EQ(std::byte{0}, ring()[i]) << i;
}

TEST_F(Ring, TheDocumentsRegion) {
    EXPECT_EQ(0U, offsetof(Region, credits));
    EXPECT_EQ(64U, offsetof(Region, asleep));
    EXPECT_EQ(72U, offsetof(Region, owner));
    EXPECT_EQ(128U, offsetof(Region, rings));
    EXPECT_EQ(16384U, kRingLines);
    EXPECT_EQ(2048U, kBankLines);
}

TEST_F(Ring, AFillerTakesTheLinesBeforeTheEnd) {
    while (writer.head() < kRingLines - 1) ASSERT_TRUE(send(8) && take());
    const std::uint32_t number = writer.sequence() + 1;
    ASSERT_TRUE(send(64));
    wire::Signal filler;
    std::memcpy(&filler, ring() + (kRingLines - 1) * wire::kLineBytes, sizeof filler);
    EXPECT_EQ(number, filler.sequence);
    EXPECT_EQ(1U, filler.lines);
    EXPECT_EQ(Kind::filler, filler.kind);
    ASSERT_TRUE(take());
    EXPECT_EQ(64U, taken.payload.size());
    EXPECT_EQ(ring() + wire::kHeaderBytes, taken.payload.data());
}

// The derivation at the top of ring.hpp, at every place in the ring where the reader may stand.
TEST_F(Ring, TheLargestFrameHasRoomOnceTheReaderHasCaughtUp) {
    for (unsigned round = 0; round < 3 * kRingLines / 61; ++round) {
        ASSERT_TRUE(send(61 * wire::kLineBytes - wire::kHeaderBytes) && take());
        if (round % 7 == 0) ASSERT_TRUE(send(wire::kFrameBytesMax - wire::kHeaderBytes) && take()) << round;
    }
}

TEST_F(Ring, AFrameAskedForTwiceIsTheSame) {
    ASSERT_TRUE(send(8) && send(8, 43));
    ASSERT_EQ(RingReader::Arrival::frame, reader.next(taken));
    const std::byte* first = taken.payload.data();
    ASSERT_EQ(RingReader::Arrival::frame, reader.next(taken));
    EXPECT_EQ(first, taken.payload.data());
}

TEST_F(Ring, EachWrongFieldIsMalformed) {
    const std::vector<std::pair<const char*, std::function<void(FrameHeader&)>>> wrongs = {
        {"an old number", [](FrameHeader& h) { h.signal.sequence = 0; }},
        {"a number too far", [](FrameHeader& h) { h.signal.sequence = 2; }},
        {"no lines", [](FrameHeader& h) { h.signal.lines = 0; }},
        {"lines beyond the ring", [](FrameHeader& h) { h.signal.lines = kRingLines + 1; }},
        {"a number but no kind", [](FrameHeader& h) { h.signal.kind = Kind::none; }},
        {"an unknown kind", [](FrameHeader& h) { h.signal.kind = static_cast<Kind>(wire::kKindMax + 1); }},
        {"a body beyond the lines", [](FrameHeader& h) { h.body_bytes = 33; }},
        {"a body beyond all bounds", [](FrameHeader& h) { h.body_bytes = UINT32_MAX; }},
        {"a body over the limit, in lines enough",
         [](FrameHeader& h) { h.body_bytes = wire::kFrameBytesMax, h.signal.lines = kRingLines; }},
        {"an extension that is no multiple of 16", [](FrameHeader& h) { h.extra_bytes = 8; }},
        {"an extension beyond the body", [](FrameHeader& h) { h.extra_bytes = 16; }}};
    for (const auto& [what, spoil] : wrongs) {
        FrameHeader header = call;
        header.signal = {1, 1, Kind::call, 0};
        header.body_bytes = 8;
        spoil(header);
        std::memcpy(ring(), &header, sizeof header);
        EXPECT_EQ(RingReader::Arrival::malformed, RingReader(ring()).next(taken)) << what;
    }
}

TEST_F(Ring, CreditMayOnlyGrowAndNotBeyondWhatWasSent) {
    while (send(1000)) {
    }
    EXPECT_FALSE(writer.credit_is_wrong());
    region->credits[0] = writer.head() + 1;
    EXPECT_FALSE(send(1000));
    EXPECT_TRUE(writer.credit_is_wrong());

    writer = RingWriter(ring(), &region->credits[0]);
    region->credits[0] = 0;
    while (send(1000)) {
    }
    region->credits[0] = 64;
    EXPECT_TRUE(send(1000));
    while (send(1000)) {
    }
    region->credits[0] = 63;
    EXPECT_FALSE(send(1000));
    EXPECT_TRUE(writer.credit_is_wrong());
}

}  // namespace
}  // namespace rove::fabric
