// The ring and its frames, held against docs/frames.md and against bytes that are wrong.
#include "fabric/ring.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "../seed.hpp"
#include "fabric/mapped_region.hpp"

namespace rove::fabric {
namespace {

using wire::FrameHeader;
using wire::Kind;

class Ring : public testing::Test {
protected:
    // A frame with that much body, which begins with `word`.
    bool send(std::uint32_t body_bytes, std::uint64_t word = 42) {
        std::byte* frame = writer.reserve(wire::kHeaderBytes + body_bytes);
        if (frame == nullptr) frame = writer.reserve_rarely(wire::kHeaderBytes + body_bytes);
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
        if (reader.take_due_credit()) region->credits[0] = reader.given_back();
        return true;
    }
    // Its reader is late once, so that the writer uses all lines from then on.
    void use_whole_ring() {
        while (send(1000)) {
        }
        while (take()) {
        }
        ASSERT_GT(writer.pages().touched(), kRingLines - 32);
    }
    std::byte* ring() { return region->rings[0]; }

    std::unique_ptr<Region> region = std::make_unique<Region>();
    static constexpr std::uint64_t kKey = 0x1122334455667700;
    RingWriter writer{region->rings[0], &region->credits[0], kKey};
    RingReader reader{region->rings[0], kKey};
    wire::Frame taken;
    FrameHeader call{.kind = Kind::call, .handle = 7, .generation = 9, .node = 1, .call = 5};
};

TEST_F(Ring, TheDocumentsExample) {
    ASSERT_TRUE(send(8) && take() && send(8) && take() && send(8));
    const std::vector<int> expected = {3, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 8, 0, 0, 0, 0, 0,
                                       2, 0,    7,    0,    0,    0,    9,    0,    0, 0, 1, 0, 0, 0,
                                       5, 0,    0,    0,    42,   0,    0,    0,    0, 0, 0, 0};
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(expected[i], std::to_integer<int>(ring()[128 + i])) << i;
    ASSERT_TRUE(take());
}

TEST_F(Ring, TheDocumentsRegion) {
    EXPECT_EQ(0U, offsetof(Region, credits));
    EXPECT_EQ(64U, offsetof(Region, wanted));
    EXPECT_EQ(72U, offsetof(Region, owner));
    EXPECT_EQ(128U, offsetof(Region, rings));
    EXPECT_EQ(16384U, kRingLines);
    EXPECT_EQ(2048U, kBankLines);
}

TEST_F(Ring, AFillerTakesTheLinesBeforeTheEnd) {
    while (writer.head() < kRingLines - 1) ASSERT_TRUE(send(8));
    while (take()) {
    }
    const std::uint64_t number = writer.sequence() + 1;
    ASSERT_TRUE(send(64));
    FrameHeader filler;
    std::memcpy(&filler, ring() + (kRingLines - 1) * wire::kLineBytes, sizeof filler);
    EXPECT_EQ(kKey + number, filler.signal);
    EXPECT_EQ(1U, wire::lines_of(filler));
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

TEST_F(Ring, AFrameLikeTheOneBeforeItIsFoundToBe) {
    ASSERT_TRUE(send(8, 1) && send(8, 2));
    ASSERT_EQ(RingReader::Arrival::frame, reader.next(taken));
    reader.release();
    ASSERT_TRUE(reader.next_alike(taken));
    EXPECT_EQ(wire::copy_of<std::uint64_t>(taken.payload), 2U);
    reader.release();
    EXPECT_FALSE(reader.next_alike(taken)) << "none has arrived";
}

TEST_F(Ring, AFrameThatDiffersInAnyFieldIsNotAlike) {
    const FrameHeader same = call;
    const std::vector<std::function<void(FrameHeader&)>> changes = {
        [](FrameHeader& h) { h.kind = Kind::ping; }, [](FrameHeader& h) { h.flags = wire::kNoReply; },
        [](FrameHeader& h) { h.handle += 1; },       [](FrameHeader& h) { h.generation += 1; },
        [](FrameHeader& h) { h.node += 1; },         [](FrameHeader& h) { h.call += 1; },
        [](FrameHeader& h) { h.hops += 1; },         [](FrameHeader& h) { h.status += 1; },
        [](FrameHeader& h) { h.extra_bytes = 16; },  [](FrameHeader&) { /* shorter */ }};
    for (std::size_t i = 0; i < changes.size(); ++i) {
        call = same;
        ASSERT_TRUE(send(24));
        ASSERT_EQ(RingReader::Arrival::frame, reader.next(taken));
        reader.release();
        changes[i](call);
        ASSERT_TRUE(send(i + 1 < changes.size() ? 24 : 16));
        EXPECT_FALSE(reader.next_alike(taken)) << i;
        ASSERT_TRUE(take()) << i;
    }
}

TEST_F(Ring, EachWrongFieldIsMalformed) {
    const std::vector<std::pair<const char*, std::function<void(FrameHeader&)>>> wrongs = {
        {"no kind", [](FrameHeader& h) { h.kind = Kind::none; }},
        {"an unknown kind", [](FrameHeader& h) { h.kind = static_cast<Kind>(wire::kKindMax + 1); }},
        {"a body beyond all bounds", [](FrameHeader& h) { h.body_bytes = UINT32_MAX; }},
        {"a body just over the limit", [](FrameHeader& h) { h.body_bytes = wire::kFrameBytesMax; }},
        {"an extension that is no multiple of 16", [](FrameHeader& h) { h.extra_bytes = 8; }},
        {"an extension beyond the body", [](FrameHeader& h) { h.extra_bytes = 16; }}};
    for (const auto& [what, spoil] : wrongs) {
        FrameHeader header = call;
        header.signal = kKey + 1;
        header.body_bytes = 8;
        spoil(header);
        std::memcpy(ring(), &header, sizeof header);
        EXPECT_EQ(RingReader::Arrival::malformed, RingReader(ring(), kKey).next(taken)) << what;
    }
}

TEST_F(Ring, AFrameThatWouldWrapIsMalformed) {
    while (writer.head() < kRingLines - 1) ASSERT_TRUE(send(8));
    while (take()) {
    }
    FrameHeader header = call;
    header.signal = kKey + writer.sequence() + 1;
    header.body_bytes = 33;
    std::memcpy(ring() + (kRingLines - 1) * wire::kLineBytes, &header, sizeof header);
    taken.header = header;
    EXPECT_FALSE(reader.next_alike(taken)) << "like one that did not wrap";
    EXPECT_EQ(RingReader::Arrival::malformed, reader.next(taken));
}

// The reader passes over them in one go: a peer that writes one after the other must not keep it.
TEST_F(Ring, AFillerThatDoesNotEndTheRingIsMalformed) {
    writer.publish({.body_bytes = 8, .kind = Kind::filler});
    EXPECT_EQ(RingReader::Arrival::malformed, reader.next(taken));
}

TEST_F(Ring, AnotherNumberIsNoFrame) {
    for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{2}, kKey, kKey + 2, ~std::uint64_t{0}}) {
        FrameHeader header = call;
        header.signal = number;
        std::memcpy(ring(), &header, sizeof header);
        EXPECT_EQ(RingReader::Arrival::none, RingReader(ring(), kKey).next(taken)) << number;
    }
}

// What is left of an old signal when a later body ends in the middle of it must not become a new one: the worst that a
// payload could do, with every byte it could end on, in laps of few frames, where numbers are close to one another.
TEST_F(Ring, NoRestOfAnOldSignalIsANewOne) {
    use_whole_ring();
    while (writer.head() % kRingLines != 0) ASSERT_TRUE(send(8) && take());
    for (unsigned lap = 0; lap < 300; ++lap) {
        while (writer.head() % kRingLines < kRingLines - wire::kFrameBytesMax / wire::kLineBytes) {
            const std::uint32_t odd = 1 + lap % 7;
            ASSERT_TRUE(send(static_cast<std::uint32_t>(wire::kFrameBytesMax) - 96 - 64 * (lap % 3) + odd));
            const std::uint64_t last =
                reader.tail() + wire::lines_of(wire::kFrameBytesMax - 64 - 64 * (lap % 3) + odd) - 1;
            std::uint64_t word = 0;
            std::memcpy(&word, ring() + last % kRingLines * wire::kLineBytes, sizeof word);
            EXPECT_EQ(0U, word >> (8 * odd)) << "the word that the body ends in";
            ASSERT_TRUE(take());
        }
        while (writer.head() % kRingLines != 0) ASSERT_TRUE(send(8) && take());
    }
}

// Frames of every size, a million times round the ring. Bodies are left as earlier laps left them but for some lines' first words,
// which hold what is likeliest to be mistaken: signals of the frames around.
TEST_F(Ring, AMillionLapsOverOldBytes) {
    use_whole_ring();
    std::mt19937_64 random(42);
    std::uint64_t frames = 0;
    while (writer.head() < 1'000'000 * kRingLines) {
        // Mostly large ones, or it would take all day; every thousandth lap small ones.
        const bool small = writer.head() / kRingLines % 1000 == 0;
        const auto body = static_cast<std::uint32_t>(random() % (small ? 512 : wire::kFrameBytesMax - 64));
        std::byte* frame = writer.reserve(wire::kHeaderBytes + body);
        if (frame == nullptr) frame = writer.reserve_rarely(wire::kHeaderBytes + body);
        ASSERT_NE(nullptr, frame) << frames;
        for (unsigned i = 0; i < 4; ++i) {
            const std::size_t line = random() % wire::lines_of(wire::kHeaderBytes + std::size_t{body});
            const std::uint64_t likely = kKey + writer.sequence() + random() % 8 - 4 - (random() % 2 << 32U);
            // The numbers yet to come are left out: nobody who writes payload knows the key.
            const std::uint64_t word = likely > kKey + writer.sequence() ? kKey : likely;
            if (line > 0 && line * wire::kLineBytes + 8 <= wire::kHeaderBytes + std::size_t{body})
                std::memcpy(frame + line * wire::kLineBytes, &word, sizeof word);
        }
        ASSERT_EQ(RingReader::Arrival::none, reader.next(taken)) << frames;  // before it is published
        FrameHeader header = call;
        header.body_bytes = body;
        header.handle = static_cast<std::uint32_t>(++frames);
        writer.publish(header);
        ASSERT_EQ(RingReader::Arrival::frame, reader.next(taken)) << frames;
        ASSERT_EQ(static_cast<std::uint32_t>(frames), taken.header.handle);
        ASSERT_EQ(body, taken.payload.size());
        reader.release();
        if (reader.take_due_credit()) region->credits[0] = reader.given_back();
    }
    EXPECT_EQ(RingReader::Arrival::none, reader.next(taken));
    EXPECT_GT(frames, 4'000'000U);
}

// A long function's frame keeps its lines, whatever becomes of those behind it.
TEST_F(Ring, AHeldFrameKeepsItsLines) {
    ASSERT_TRUE(send(8) && send(8) && take());
    ASSERT_EQ(RingReader::Arrival::frame, reader.next(taken));
    const Bytes payload = taken.payload;
    const std::uint64_t held = reader.hold();
    std::uint64_t behind = 0;
    EXPECT_FALSE(reader.keeps_back());
    while (send(1000, 77)) ASSERT_TRUE(take() && ++behind > 0);
    EXPECT_TRUE(reader.keeps_back());
    EXPECT_GT(behind, kRingLines / 17 - 3);  // all of the ring but what is held
    EXPECT_EQ(1U, reader.given_back());
    EXPECT_EQ(std::byte{42}, payload[0]);
    reader.let_go(held);
    EXPECT_FALSE(reader.keeps_back());
    EXPECT_TRUE(reader.take_due_credit());
    EXPECT_EQ(reader.tail(), reader.given_back());
}

// What lies behind a held frame is given back with it: the second of two that ends first gives nothing.
TEST_F(Ring, OfTwoHeldFramesTheFirstKeepsBoth) {
    ASSERT_TRUE(send(8) && send(8) && send(8));
    ASSERT_EQ(RingReader::Arrival::frame, reader.next(taken));
    const std::uint64_t first = reader.hold();
    ASSERT_EQ(RingReader::Arrival::frame, reader.next(taken));
    const std::uint64_t second = reader.hold();
    EXPECT_EQ(0U, reader.given_back());
    ASSERT_TRUE(take());
    reader.let_go(second);
    EXPECT_EQ(0U, reader.given_back());
    EXPECT_FALSE(reader.take_due_credit());
    reader.let_go(first);
    EXPECT_EQ(3U, reader.given_back());
}

// ---- how much of the ring is used

TEST_F(Ring, AWriterWhoseReaderKeepsUpStaysWithinFewLines) {
    for (int i = 0; i < 20'000; ++i) {
        ASSERT_TRUE(send(i % 500) && take()) << i;
        EXPECT_LT(taken.payload.data() - ring(), static_cast<std::ptrdiff_t>(kLinesAtFirst * wire::kLineBytes)) << i;
    }
    EXPECT_GT(writer.head(), 100 * kRingLines) << "each time it goes back is a lap";
    EXPECT_LE(writer.pages().touched(), kLinesAtFirst + 1) << "the filler before it goes back";
    EXPECT_EQ(reader.next(taken), RingReader::Arrival::none);
}

// It does not wait for the reader where there is room further on.
TEST_F(Ring, AWriterWhoseReaderIsLateUsesMore) {
    unsigned ahead = 0;
    for (int i = 0; i < 20'000; ++i) {
        ASSERT_TRUE(send(8)) << i;
        if (ahead < 1000)
            ++ahead;
        else
            ASSERT_TRUE(take());
    }
    EXPECT_GT(writer.pages().touched(), 1000U);
    EXPECT_LE(writer.pages().touched(), 8 * kLinesAtFirst + 1) << "but not all of it";
}

TEST_F(Ring, AfterALargeFrameItGoesBackAtOnce) {
    ASSERT_TRUE(send(8) && take() && send(100'000) && take());
    ASSERT_TRUE(send(8) && take());
    EXPECT_EQ(taken.payload.data(), ring() + wire::kHeaderBytes);
    EXPECT_GE(writer.pages().touched(), wire::lines_of(100'000));
}

TEST_F(Ring, AfterItHasBeenQuietItUsesFewLinesAgain) {
    use_whole_ring();
    ASSERT_TRUE(send(70 * wire::kLineBytes));
    EXPECT_FALSE(writer.is_drained()) << "a large frame is not given back yet";
    ASSERT_TRUE(take() && send(8) && take());
    EXPECT_TRUE(writer.is_drained());
    EXPECT_EQ(writer.kept().last - writer.kept().first, 1U) << "the last credit is still to come";
    EXPECT_TRUE(reader.take_credit());
    EXPECT_FALSE(reader.take_credit());
    region->credits[0] = reader.given_back();
    EXPECT_TRUE(writer.is_drained());
    EXPECT_EQ(writer.kept().last - writer.kept().first, 0U);
    writer.forget_pages();
    EXPECT_LE(writer.pages().touched(), kLinesAtFirst + 1) << "the filler before it goes back";
    for (int i = 0; i < 2000; ++i) ASSERT_TRUE(send(8) && take());
    EXPECT_LE(writer.pages().touched(), kLinesAtFirst + 1) << "the filler before it goes back";
}

// ---- pages that are given back while frames go on

// A writer that had to keep to one page goes on before the wall that it had: 20 frames are not read when a longer one comes.
// What it makes its own by stores into the next lines: see kOwnedLines.
class RingOfPosts : public Ring {
protected:
    RingOfPosts() { call.flags = wire::kNoReply; }
    // A post that fills its lines.
    bool post(std::uint64_t number, std::uint32_t lines = 1) {
        const std::uint32_t bytes = lines * wire::kLineBytes - wire::kHeaderBytes;
        std::byte* frame = writer.reserve(wire::kHeaderBytes + bytes);
        if (frame == nullptr) frame = writer.reserve_rarely(wire::kHeaderBytes + bytes);
        if (frame == nullptr) return false;
        for (std::uint32_t at = 0; at < bytes; at += sizeof number)
            std::memcpy(frame + wire::kHeaderBytes + at, &number, sizeof number);
        FrameHeader header = call;
        header.body_bytes = bytes;
        writer.publish(header);
        return true;
    }
    void expect(std::uint64_t number) {
        ASSERT_TRUE(take()) << number;
        for (std::size_t at = 0; at < taken.payload.size(); at += sizeof number) {
            std::uint64_t word = 0;
            std::memcpy(&word, taken.payload.data() + at, sizeof word);
            ASSERT_EQ(word, number) << "at " << at;
        }
    }
    std::uint64_t sent = 0, read = 0;
};

TEST_F(RingOfPosts, NothingUnreadIsWrittenOver) {
    std::mt19937 random(test::seed());
    for (int round = 0; round < 400; ++round) {
        for (unsigned i = random() % 3000; i > 0 && post(sent, 1 + sent % 5); --i) ++sent;
        for (unsigned i = random() % 3000; i > 0 && read < sent; --i) expect(read++);
        if (HasFatalFailure()) return;
    }
    while (post(sent, 1 + sent % 5)) ++sent;  // until there is no room
    while (read < sent) expect(read++);
    EXPECT_GT(writer.head(), 10 * kRingLines);
}

TEST_F(RingOfPosts, OwnsTheNextLinesOncePerLap) {
    std::fill_n(ring(), kRingBytes, std::byte{0xff});
    ASSERT_TRUE(post(0));
    const auto is_owned = [&](std::uint64_t line) {
        return ring()[(line + 1) * wire::kLineBytes - 1] == std::byte{0} &&
               ring()[line * wire::kLineBytes] == std::byte{0xff};
    };
    for (std::uint64_t line = 1; line <= kOwnedLines; ++line) EXPECT_TRUE(is_owned(line)) << line;
    EXPECT_FALSE(is_owned(kOwnedLines + 1));
    for (std::uint64_t i = 1; i < kOwnedLines; ++i) ASSERT_TRUE(post(i));
    EXPECT_FALSE(is_owned(kOwnedLines + 1)) << "not for each post";
    ASSERT_TRUE(post(kOwnedLines));
    EXPECT_TRUE(is_owned(2 * kOwnedLines));
}

TEST_F(RingOfPosts, TakesNoMoreMemoryForThat) {
    for (std::uint64_t i = 0; i < 3 * kLinesAtFirst; ++i) {
        ASSERT_TRUE(post(i));
        expect(i);
    }
    const auto* const words = reinterpret_cast<const std::uint64_t*>(ring());
    const std::size_t end = (kLinesAtFirst + 1) * wire::kLineBytes / sizeof *words;  // a filler's header is at the wall
    for (std::size_t at = end; at < kRingBytes / sizeof *words; ++at) ASSERT_EQ(words[at], 0U) << at;
}

TEST_F(RingOfPosts, WritesNothingWhereItsPagesAreGivenBack) {
    for (std::uint64_t i = 0; i < 100; ++i) {
        ASSERT_TRUE(post(i));
        expect(i);
    }
    region->credits[0] = reader.given_back();
    ASSERT_TRUE(writer.is_drained());
    writer.lend_pages();
    const std::uint64_t wall = writer.pages().wall();
    std::fill_n(ring() + wall * wire::kLineBytes, kRingBytes - wall * wire::kLineBytes, std::byte{0xff});
    for (std::uint64_t i = 100; post(i); ++i) expect(i);
    for (std::uint64_t line = wall; line < kRingLines; ++line)
        ASSERT_EQ(ring()[(line + 1) * wire::kLineBytes - 1], std::byte{0xff}) << line;
}

TEST_F(Ring, AWriterWhosePagesStayWritesOverNothingThatIsUnread) {
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(send(8) && take());
    region->credits[0] = reader.given_back();
    ASSERT_TRUE(writer.is_drained());
    writer.lend_pages();
    for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(send(8, i));
    ASSERT_FALSE(writer.has_room(33 * wire::kLineBytes));
    writer.keep_pages();
    ASSERT_TRUE(send(33 * wire::kLineBytes - wire::kHeaderBytes, 20));
    EXPECT_LE(writer.head() - reader.given_back(), kRingLines);
    for (std::uint64_t i = 0; i <= 20; ++i) {
        ASSERT_TRUE(take()) << i;
        EXPECT_EQ(std::memcmp(taken.payload.data(), &i, sizeof i), 0) << i;
    }
}

TEST_F(Ring, PagesThatStayAreStillKnown) {
    use_whole_ring();
    region->credits[0] = reader.given_back();
    ASSERT_TRUE(writer.is_drained());
    writer.lend_pages();
    writer.keep_pages();
    EXPECT_GT(writer.pages().touched(), kRingLines - 32);
    EXPECT_GT(writer.pages().wall(), kRingLines - 32) << "it need not grow again";
}

// Frames of all lengths; a reader that is late, or holds a frame; and another thread that frees pages, later, or that is told to leave them. Each
// frame is read as it was written.
TEST_F(Ring, EachFrameIsReadAsItWasWrittenWhateverBecomesOfItsPages) {
    enum class Freeing : std::uint8_t { no, waits, begun };
    unsigned lent = 0, kept = 0, freed = 0;
    for (unsigned seed = 0; seed < 100; ++seed) {
        const MappedRegion mapped = map_private_region();
        std::byte* const memory = mapped->rings[0];
        writer = RingWriter(memory, &mapped->credits[0], kKey);
        reader = RingReader(memory, kKey);
        std::mt19937_64 random(seed);
        std::uint64_t sent = 0, read = 0;
        std::optional<std::uint64_t> held;
        Freeing freeing = Freeing::no;
        std::uint64_t touched = 0;
        KeptLines stay{};
        const auto lines_of_next = [&] {
            static constexpr std::uint64_t kLengths[] = {1, 1, 1, 1, 2, 4, 16, 33, 64, 80, 1024};
            return kLengths[random() % std::size(kLengths)];
        };
        const auto check = [&] {
            for (std::size_t at = 0; at + sizeof read <= taken.payload.size(); at += wire::kLineBytes)
                ASSERT_EQ(std::memcmp(taken.payload.data() + at, &read, sizeof read), 0) << "frame " << read;
        };
        for (unsigned step = 0; step < 3000; ++step) {
            const unsigned what = random() % 100;
            if (what < 50) {
                const std::size_t bytes = lines_of_next() * wire::kLineBytes;
                if (!writer.has_room(bytes)) {
                    if (freeing != Freeing::waits) continue;
                    freeing = Freeing::no;
                    writer.keep_pages();
                    ++kept;
                    if (!writer.has_room(bytes)) continue;
                }
                std::byte* frame = writer.reserve(bytes);
                if (frame == nullptr) frame = writer.reserve_rarely(bytes);
                ASSERT_NE(frame, nullptr);
                for (std::size_t at = wire::kHeaderBytes; at + sizeof sent <= bytes; at += wire::kLineBytes)
                    std::memcpy(frame + at, &sent, sizeof sent);
                FrameHeader header = call;
                header.body_bytes = static_cast<std::uint32_t>(bytes - wire::kHeaderBytes);
                writer.publish(header);
                ++sent;
            } else if (what < 85) {
                for (std::uint64_t left = random() % 30; left > 0; --left) {
                    if (reader.next(taken) != RingReader::Arrival::frame) break;
                    check();
                    ++read;
                    if (!held && random() % 20 == 0)
                        held = reader.hold();
                    else
                        reader.release();
                }
                if (reader.take_due_credit() || (random() % 4 == 0 && reader.take_credit()))
                    mapped->credits[0] = reader.given_back();
            } else if (what < 90 && held) {
                reader.let_go(*held);
                held.reset();
            } else if (freeing == Freeing::no) {
                if (!writer.is_drained()) continue;
                touched = writer.pages().touched();
                stay = writer.kept();
                writer.lend_pages();
                freeing = Freeing::waits;
                ++lent;
            } else if (freeing == Freeing::waits) {
                freeing = Freeing::begun;
            } else {
                free_pages_of(memory, touched, stay, MADV_DONTNEED);
                writer.forget_pages();
                freeing = Freeing::no;
                ++freed;
            }
        }
        if (held) reader.let_go(*held);
        for (; reader.next(taken) == RingReader::Arrival::frame; ++read, reader.release()) check();
        ASSERT_EQ(read, sent) << "seed " << seed;
    }
    EXPECT_GT(kept, 100U);
    EXPECT_GT(freed, 100U);
    EXPECT_GT(lent, kept + freed - 1);
}

// A reader that is behind gives credit seldom, because each takes a line from the writer.
TEST_F(Ring, CreditComesEarlyOnlyFromAReaderThatHasCaughtUp) {
    for (std::uint64_t i = 0; i < kBankLines + 1; ++i) ASSERT_TRUE(send(8));
    std::uint64_t given = 0;
    for (std::uint64_t i = 0; i < kBankLines - 1; ++i) {
        ASSERT_EQ(reader.next(taken), RingReader::Arrival::frame);
        reader.release();
        given += reader.take_due_credit() ? 1 : 0;
    }
    EXPECT_EQ(given, 0U);
    ASSERT_TRUE(take() && take());
    EXPECT_EQ(region->credits[0], kBankLines);
    for (std::uint64_t i = 0; i < kCaughtUpLines - 2; ++i) ASSERT_TRUE(send(8) && take());
    EXPECT_EQ(region->credits[0], kBankLines);
    ASSERT_TRUE(send(8) && take());
    EXPECT_EQ(region->credits[0], kBankLines + kCaughtUpLines);
}

// Where one has ended, another one would end at the same place.
TEST_F(Ring, AFillerAsLongAsTheRingIsMalformed) {
    writer.publish({.body_bytes = kRingBytes - wire::kHeaderBytes, .kind = Kind::filler});
    EXPECT_EQ(RingReader::Arrival::malformed, reader.next(taken));
}

TEST_F(Ring, OnlyAFillerIsLongerThanAFrame) {
    for (const Kind kind : {Kind::filler, Kind::call}) {
        FrameHeader header = call;
        header.signal = kKey + 1;
        header.kind = kind;
        header.body_bytes = kRingBytes - wire::kLineBytes - wire::kHeaderBytes;
        EXPECT_EQ(wire::is_well_formed(header), kind == Kind::filler);
        header.body_bytes += wire::kLineBytes;
        EXPECT_FALSE(wire::is_well_formed(header));
    }
}

TEST_F(Ring, HoldsAsManyFramesAsItHasLines) {
    std::uint64_t sent = 0;
    while (sent <= kRingLines && send(0)) ++sent;
    EXPECT_EQ(kRingLines, sent);
}

TEST_F(Ring, CreditMayOnlyGrowAndNotBeyondWhatWasSent) {
    while (send(1000)) {
    }
    EXPECT_FALSE(writer.credit_is_wrong());
    region->credits[0] = writer.head() + 1;
    EXPECT_FALSE(send(1000));
    EXPECT_TRUE(writer.credit_is_wrong());

    writer = RingWriter(ring(), &region->credits[0], kKey);
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
