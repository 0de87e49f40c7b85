// The promises of stream lanes beyond the common list: each byte that a peer sends is checked before it is used.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/descriptor.hpp"
#include "fabric/stream/message.hpp"
#include "fabrics.hpp"

namespace rove::fabric {
namespace {

// One end is a link, the other a socket that a test writes what it likes to.
class Stream : public testing::Test {
protected:
    Stream() { open(); }
    void open() {
        link.reset();
        const auto [mine, other] = socket_pair();
        socket = Descriptor(other);
        link = std::move(*fabric->open_stream(mine, kTestKeys));
        sent = 0;
    }
    void write_bytes(Bytes bytes) {
        while (!bytes.empty() && link->broken() == nullptr) {
            const ssize_t wrote = ::send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (wrote > 0) bytes = bytes.subspan(static_cast<std::size_t>(wrote));
            fabric->progress();
        }
        fabric->progress();
    }
    // A message of one frame, well formed.
    ByteBuffer message(std::uint64_t position, std::size_t payload_bytes, StreamKind kind = StreamKind::calls) {
        StreamHeader header;
        header.bytes = static_cast<std::uint32_t>(wire::kHeaderBytes + round_up(payload_bytes, 8));
        header.kind = kind;
        header.position = position;
        wire::FrameHeader frame;
        frame.signal = kTestKeys.incoming + ++sent;
        frame.kind = wire::Kind::call;
        frame.body_bytes = static_cast<std::uint32_t>(payload_bytes);
        ByteBuffer bytes(sizeof header + header.bytes);
        std::memcpy(bytes.data(), &header, sizeof header);
        std::memcpy(bytes.data() + sizeof header, &frame, sizeof frame);
        return bytes;
    }
    std::vector<std::byte> read_all() {
        std::vector<std::byte> bytes(1 << 20);
        const ssize_t got = recv(socket.number(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        return bytes;
    }

    std::unique_ptr<Fabric> fabric = std::move(*open_local_fabric({.direct = false}));
    Descriptor socket;
    std::unique_ptr<Link> link;
    std::uint64_t sent = 0;
    std::mt19937_64 random{test::seed()};
};

TEST_F(Stream, TheDocumentsExample) {
    const std::uint64_t value = 42;
    for (unsigned i = 0; i < 3; ++i) {
        std::byte* frame = link->reserve(Traffic::calls, wire::kHeaderBytes + sizeof value);
        std::memcpy(frame + wire::kHeaderBytes, &value, sizeof value);
        (void)read_all();
        link->publish(Traffic::calls,
                      {.body_bytes = 8, .kind = wire::Kind::call, .handle = 7, .generation = 9, .node = 1, .call = 5});
        fabric->progress();
    }
    const std::vector<int> expected = {
        0x28, 0,    0,    0,    1,    0,    0,    0,    2, 0, 0, 0, 0,  0, 0, 0,  // 40 bytes of calls, line 2
        3,    0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 8, 0, 0, 0, 0,  0, 2, 0, 7, 0, 0, 0,
        9,    0,    0,    0,    1,    0,    0,    0,    5, 0, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0};
    const auto bytes = read_all();
    ASSERT_EQ(expected.size(), bytes.size());
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(expected[i], std::to_integer<int>(bytes[i])) << i;
}

TEST_F(Stream, EachWrongFieldOfAHeaderBreaksTheLink) {
    const std::vector<std::pair<const char*, std::function<void(StreamHeader&)>>> wrongs = {
        {"no kind", [](StreamHeader& h) { h.kind = StreamKind::none; }},
        {"an unknown kind", [](StreamHeader& h) { h.kind = static_cast<StreamKind>(5); }},
        {"the last kind there could be", [](StreamHeader& h) { h.kind = static_cast<StreamKind>(255); }},
        {"a reserved byte", [](StreamHeader& h) { h.reserved[1] = 1; }},
        {"no bytes", [](StreamHeader& h) { h.bytes = 0; }},
        {"less than a frame's header", [](StreamHeader& h) { h.bytes = wire::kHeaderBytes - 1; }},
        {"more than a message may have", [](StreamHeader& h) { h.bytes = kStreamMessageBytesMax + 1; }},
        {"bytes beyond all bounds", [](StreamHeader& h) { h.bytes = UINT32_MAX; }},
        {"a position before", [](StreamHeader& h) { h.position -= 1; }},
        {"a position behind", [](StreamHeader& h) { h.position += 1; }},
        {"a position a lap later", [](StreamHeader& h) { h.position += kRingLines; }},
        {"a position two laps later", [](StreamHeader& h) { h.position = 2 * kRingLines; }},
        {"the last position there is", [](StreamHeader& h) { h.position = UINT64_MAX; }},
        {"the position of the other ring", [](StreamHeader& h) { h.kind = StreamKind::prompt; }},
        {"a credit with a body", [](StreamHeader& h) { h = {.bytes = 32, .kind = StreamKind::credit_of_calls}; }},
        {"credit for what was not sent",
         [](StreamHeader& h) { h = {.kind = StreamKind::credit_of_calls, .position = 1}; }},
        {"credit beyond all bounds",
         [](StreamHeader& h) { h = {.kind = StreamKind::credit_of_prompt, .position = UINT64_MAX}; }}};
    for (const auto& [what, spoil] : wrongs) {
        open();
        write_bytes(message(0, 8));
        ASSERT_EQ(nullptr, link->broken()) << what;
        ByteBuffer bytes = message(1, 8);
        StreamHeader header;
        std::memcpy(&header, bytes.data(), sizeof header);
        spoil(header);
        std::memcpy(bytes.data(), &header, sizeof header);
        write_bytes(Bytes(bytes).first(sizeof header));  // the header alone is enough
        ASSERT_NE(nullptr, link->broken()) << what;
        EXPECT_EQ(ErrorCode::invalid, link->broken()->code()) << what;
    }
}

// The ring of calls has room for four of the largest frames; nobody reads it.
TEST_F(Stream, FramesBeyondTheCreditAreCutOff) {
    std::uint64_t line = 0;
    const std::size_t largest = wire::kFrameBytesMax - wire::kHeaderBytes;
    for (unsigned i = 0; i < 4; ++i, line += wire::kFrameBytesMax / wire::kLineBytes) {
        write_bytes(message(line, largest));
        ASSERT_EQ(nullptr, link->broken()) << i << ": " << link->broken()->message();
    }
    EXPECT_EQ(kRingLines, line);
    write_bytes(message(line, 8));
    ASSERT_NE(nullptr, link->broken());
    EXPECT_EQ(ErrorCode::invalid, link->broken()->code());
}

TEST_F(Stream, AMessageThatWouldWrapIsCutOff) {
    const std::size_t half = wire::kFrameBytesMax / 2;
    std::uint64_t line = 0;
    wire::Frame frame;
    for (; line + half / wire::kLineBytes < kRingLines; line += half / wire::kLineBytes) {
        write_bytes(message(line, half - wire::kHeaderBytes));
        ASSERT_TRUE(link->next(Traffic::calls, frame));
        link->release(Traffic::calls);
    }
    write_bytes(message(line, half));
    ASSERT_NE(nullptr, link->broken());
    EXPECT_EQ(ErrorCode::invalid, link->broken()->code());
}

// Credit goes up to what the socket took; what is less than before, or more, ends the link.
TEST_F(Stream, CreditMayOnlyGrowAndNotBeyondWhatWasSent) {
    const auto credit = [this](std::uint64_t lines) {
        StreamHeader header{.kind = StreamKind::credit_of_calls, .position = lines};
        write_bytes(std::as_bytes(std::span(&header, 1)));
        return link->broken() == nullptr;
    };
    for (const std::uint64_t wrong : {9U, 11U}) {
        open();
        for (std::uint64_t number = 0; number < 10; ++number) {
            ASSERT_TRUE(fabric::send(*link, Traffic::calls, number, 8));
            fabric->progress();
        }
        EXPECT_TRUE(credit(5));
        EXPECT_TRUE(credit(5));
        EXPECT_TRUE(credit(10));
        EXPECT_FALSE(credit(wrong)) << wrong;
    }
}

TEST_F(Stream, ByteByByteAFrameArrivesOnceAndWhole) {
    std::uint64_t line = 0;
    wire::Frame frame;
    for (const std::size_t payload : {0UL, 1UL, 8UL, 100UL, 3000UL}) {
        ByteBuffer bytes = message(line, payload);
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            ASSERT_FALSE(link->next(Traffic::calls, frame)) << payload << ", byte " << i;
            write_bytes(Bytes(bytes).subspan(i, 1));
        }
        ASSERT_TRUE(link->next(Traffic::calls, frame)) << payload;
        EXPECT_EQ(payload, frame.payload.size());
        link->release(Traffic::calls);
        line += wire::lines_of(wire::kHeaderBytes + payload);
    }
}

// A message is received straight to its place, and takes as long as its sender likes.
TEST_F(Stream, AMessageThatIsStillComingKeepsItsPages) {
    constexpr std::size_t kPayload = 100'000;
    ByteBuffer bytes = message(0, kPayload);
    fill(std::span(bytes).subspan(bytes.size() - kPayload), 7);
    const std::size_t half = bytes.size() / 2;
    for (const Bytes part : {Bytes(bytes).first(half), Bytes(bytes).subspan(half)}) {
        write_bytes(part);
        for (int look = 0; look < 4; ++look) (void)link->tend_memory();
    }
    wire::Frame frame;
    ASSERT_TRUE(link->next(Traffic::calls, frame));
    EXPECT_TRUE(is_filled(frame.payload, 7));
}

TEST_F(Stream, GarbageBreaksTheLinkAndNothingElse) {
    for (unsigned round = 0; round < 2000; ++round) {
        open();
        for (std::uint64_t good = random() % 4, line = 0; good > 0; --good, ++line) write_bytes(message(line, 8));
        // Half of it begins like a message that could be true.
        ByteBuffer garbage(24 + random() % (std::size_t{1} << (random() % 16)));
        for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
        if (round % 2 == 0) {
            StreamHeader header{.bytes = static_cast<std::uint32_t>(random() % kStreamMessageBytesMax),
                                .kind = static_cast<StreamKind>(random() % 6),
                                .position = random() % 3 == 0 ? 0 : sent};
            std::memcpy(garbage.data(), &header, sizeof header);
        }
        write_bytes(garbage);
        wire::Frame frame;
        for (const Traffic traffic : {Traffic::calls, Traffic::prompt})
            while (link->next(traffic, frame)) link->release(traffic);
        socket.close();
        fabric->progress();
        fabric->progress();
        ASSERT_NE(nullptr, link->broken()) << round;
    }
}

TEST_F(Stream, TheEndOfTheStreamIsDisconnectedAndSaysWhy) {
    socket.close();
    fabric->progress();
    ASSERT_NE(nullptr, link->broken());
    EXPECT_EQ(ErrorCode::disconnected, link->broken()->code());
    EXPECT_NE(std::string::npos, link->broken()->message().find("closed")) << link->broken()->message();
    // Whoever sleeps is not woken by it again and again.
    pollfd wanted{fabric->descriptors().front(), POLLIN, 0};
    EXPECT_EQ(0, poll(&wanted, 1, 0));
}

TEST_F(Stream, WhatCameBeforeTheEndIsStillDelivered) {
    for (std::uint64_t line = 0; line < 3; ++line) write_bytes(message(line, 8));
    write_bytes(Bytes(message(3, 8)).first(40));  // not all of it came
    socket.close();
    for (unsigned turn = 0; turn < 4; ++turn) fabric->progress();
    ASSERT_NE(nullptr, link->broken());
    EXPECT_TRUE(link->has_ended());
    EXPECT_EQ(nullptr, link->reserve(Traffic::calls, 64)) << "nothing can be sent";
    wire::Frame frame;
    unsigned taken = 0;
    for (; link->pending() && link->next(Traffic::calls, frame); ++taken) link->release(Traffic::calls);
    EXPECT_EQ(3U, taken);
    EXPECT_EQ(ErrorCode::disconnected, link->broken()->code());
}

// A send that fails says that the other end is closed, and not that nothing came from there.
TEST_F(Stream, WhatCameBeforeASendFailedIsStillDelivered) {
    const ByteBuffer bytes = message(0, 8);
    ASSERT_EQ(static_cast<ssize_t>(bytes.size()), ::send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
    socket.close();
    ASSERT_TRUE(fabric::send(*link, Traffic::calls, 0, 70'000));  // at once
    ASSERT_NE(nullptr, link->broken());
    for (unsigned turn = 0; turn < 4; ++turn) fabric->progress();
    wire::Frame frame;
    EXPECT_TRUE(link->next(Traffic::calls, frame));
    pollfd wanted{fabric->descriptors().front(), POLLIN, 0};
    EXPECT_EQ(0, poll(&wanted, 1, 0));
}

// Of a peer that has broken a rule nothing more is believed.
TEST_F(Stream, WhatCameBeforeAWrongHeaderIsNotDelivered) {
    for (std::uint64_t line = 0; line < 3; ++line) write_bytes(message(line, 8));
    write_bytes(message(7, 8));
    socket.close();
    for (unsigned turn = 0; turn < 4; ++turn) fabric->progress();
    ASSERT_NE(nullptr, link->broken());
    EXPECT_FALSE(link->has_ended());
    wire::Frame frame;
    EXPECT_FALSE(link->pending());
    EXPECT_FALSE(link->next(Traffic::calls, frame));
    EXPECT_EQ(ErrorCode::invalid, link->broken()->code());
}

// Whoever has the credit for a call has its reply.
TEST_F(Stream, RepliesLeaveBeforeTheCreditForTheirCalls) {
    write_bytes(message(0, 150'000));  // more than a bank
    wire::Frame frame;
    ASSERT_TRUE(link->next(Traffic::calls, frame));
    for (std::uint64_t number = 0; number < 3; ++number) ASSERT_TRUE(fabric::send(*link, Traffic::prompt, number, 8));
    link->release(Traffic::calls);
    fabric->progress();
    const auto bytes = read_all();
    std::vector<StreamKind> kinds;
    for (std::size_t at = 0; at + sizeof(StreamHeader) <= bytes.size();) {
        StreamHeader header;
        std::memcpy(&header, bytes.data() + at, sizeof header);
        kinds.push_back(header.kind);
        at += sizeof header + header.bytes;
    }
    ASSERT_GE(kinds.size(), 2U);
    EXPECT_EQ(StreamKind::credit_of_calls, kinds.back());
    EXPECT_EQ(1, std::count(kinds.begin(), kinds.end(), StreamKind::credit_of_calls));
}

// What the socket does not take waits in the mirror, and leaves when the peer reads.
TEST_F(Stream, APeerThatDoesNotReadCostsItsRingOnly) {
    std::uint64_t number = 0;
    while (fabric::send(*link, Traffic::calls, number, 10'000)) ++number;
    EXPECT_EQ(kRingLines / wire::lines_of(10'000 + wire::kHeaderBytes), number);
    ASSERT_TRUE(fabric->announce_sleep());
    pollfd wanted{fabric->descriptors().front(), POLLIN, 0};
    EXPECT_EQ(0, poll(&wanted, 1, 0)) << "there is no room yet";
    std::size_t bytes = 0;
    for (unsigned turn = 0; turn < 10'000 && bytes < number * 10'000; ++turn) {
        bytes += read_all().size();
        if (turn == 0) EXPECT_EQ(1, poll(&wanted, 1, 10'000)) << "room wakes the sleeper";
        fabric->progress();
    }
    EXPECT_GE(bytes, number * 10'000);
    EXPECT_EQ(nullptr, link->broken());
}

// More links than are polled one by one, one of which sends without end.
TEST_F(Stream, AChattyPeerDoesNotKeepOthersOut) {
    std::vector<std::unique_ptr<Link>> links;
    std::vector<Descriptor> sockets;
    for (unsigned i = 0; i < 20; ++i) {
        const auto [mine, other] = socket_pair();
        sockets.emplace_back(other);
        links.push_back(std::move(*fabric->open_stream(mine, kTestKeys)));
    }
    const ByteBuffer bytes = message(0, 8);
    for (const Descriptor& each : sockets)
        ASSERT_EQ(bytes.size(), ::send(each.number(), bytes.data(), bytes.size(), 0));
    std::uint64_t line = 0;
    sent = 0;
    wire::Frame frame;
    for (unsigned turn = 0; turn < 100; ++turn) {
        write_bytes(message(line, 50'000));
        line += wire::lines_of(wire::kHeaderBytes + 50'000);
        while (link->next(Traffic::calls, frame)) link->release(Traffic::calls);
        if (line % kRingLines + 2 * 1024 > kRingLines) break;
    }
    for (const auto& each : links) EXPECT_TRUE(each->next(Traffic::calls, frame));
}

TEST_F(Stream, AnythingButAStreamIsRefused) {
    int ends[2];
    ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    EXPECT_EQ(ErrorCode::invalid, fabric->open_stream(ends[0], kTestKeys).error().code());
    close(ends[1]);
    ASSERT_EQ(0, pipe(ends));
    EXPECT_FALSE(fabric->open_stream(ends[0], kTestKeys));
    close(ends[1]);
    EXPECT_FALSE(link->connect(as_bytes("an offer")));
    EXPECT_TRUE(link->connect({}));
}

TEST_F(Stream, TwoThousandLinksLeaveNothingBehind) {
    const auto descriptors = [] {
        const std::filesystem::directory_iterator all("/proc/self/fd");
        return std::distance(begin(all), end(all));
    };
    const auto before = descriptors();
    for (unsigned i = 0; i < 2000; ++i) {
        open();
        if (i % 2 == 0) ASSERT_TRUE(fabric::send(*link, Traffic::calls, 0, 8));
        if (i % 3 == 0) socket.close();
        fabric->progress();
    }
    open();
    EXPECT_EQ(before, descriptors());
}

}  // namespace
}  // namespace rove::fabric
