// The socket of a stream lane by itself, over a pair of sockets.
#include <array>
#include <optional>
#include <vector>

#include "fabric/stream/socket.hpp"
#include "fabrics.hpp"

namespace rove::fabric {
namespace {

class Socket : public testing::Test {
protected:
    Socket() {
        const auto [one, two] = socket_pair();
        mine.emplace(std::move(*StreamSocket::open(Descriptor(one), kTestKeys)));
        other.emplace(std::move(*StreamSocket::open(Descriptor(two), kOtherTestKeys)));
    }
    std::optional<StreamSocket> mine, other;
};

iovec part_of(std::span<std::byte> bytes) {
    return {bytes.data(), bytes.size()};
}

TEST_F(Socket, SendsAllPartsInTheirOrder) {
    std::array<std::byte, 3> first{std::byte{1}, std::byte{2}, std::byte{3}};
    std::array<std::byte, 2> second{std::byte{4}, std::byte{5}};
    std::array parts{part_of(first), part_of(second)};
    EXPECT_EQ(5U, mine->send(parts).bytes);

    std::array<std::byte, 4> in_place{};
    std::array<std::byte, 8> after{};
    std::array places{part_of(in_place), part_of(after)};
    EXPECT_EQ(5U, other->receive(places).bytes);
    EXPECT_EQ(std::byte{4}, in_place[3]);
    EXPECT_EQ(std::byte{5}, after[0]);
}

TEST_F(Socket, ReceivesIntoTheSecondPartWhereTheFirstIsEmpty) {
    std::array<std::byte, 1> byte{std::byte{7}};
    std::array parts{part_of(byte)};
    EXPECT_EQ(1U, mine->send(parts).bytes);
    std::array<std::byte, 8> after{};
    std::array places{iovec{}, part_of(after)};
    EXPECT_EQ(1U, other->receive(places).bytes);
    EXPECT_EQ(std::byte{7}, after[0]);
}

// No byte is lost or sent twice where the socket takes a part of what it is given.
TEST_F(Socket, ContinuesAfterAPartialSend) {
    std::vector<std::byte> sent(4 << 20);
    std::uint32_t state = 1;
    for (std::byte& each : sent) each = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
    std::vector<std::byte> received;
    std::vector<std::byte> room(64 * 1024);
    unsigned partial = 0;
    for (std::size_t at = 0; received.size() < sent.size();) {
        while (at < sent.size()) {  // until it takes nothing
            std::array parts{part_of(std::span(sent).subspan(at))};
            const StreamSocket::Moved moved = mine->send(parts);
            ASSERT_EQ("", moved.end);
            at += moved.bytes;
            if (at < sent.size()) ++partial;
            if (moved.bytes == 0) break;
        }
        std::array places{iovec{}, part_of(room)};
        const StreamSocket::Moved moved = other->receive(places);
        ASSERT_EQ("", moved.end);
        received.insert(received.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(moved.bytes));
    }
    EXPECT_GT(partial, 1U);
    EXPECT_TRUE(sent == received);
}

TEST_F(Socket, NothingHasArrivedIsNoEnd) {
    std::array<std::byte, 8> bytes{};
    std::array places{iovec{}, part_of(bytes)};
    const StreamSocket::Moved moved = mine->receive(places);
    EXPECT_EQ(0U, moved.bytes);
    EXPECT_EQ("", moved.end);
}

TEST_F(Socket, ReportsTheEndAfterWhatWasSentBefore) {
    std::array<std::byte, 1> byte{};
    std::array parts{part_of(byte)};
    EXPECT_EQ(1U, other->send(parts).bytes);
    other.reset();
    std::array<std::byte, 8> bytes{};
    std::array places{iovec{}, part_of(bytes)};
    EXPECT_EQ(1U, mine->receive(places).bytes);
    EXPECT_EQ("its other end was closed", mine->receive(places).end);
    EXPECT_EQ(std::string(strerror(EPIPE)), mine->send(parts).end);
}

// A copy of the descriptor, as the child of a fork has, does not keep the stream open.
TEST_F(Socket, EndsTheStreamThoughTheDescriptorHasACopy) {
    const Descriptor copy(dup(other->descriptor()));
    other.reset();
    std::array<std::byte, 8> bytes{};
    std::array places{iovec{}, part_of(bytes)};
    EXPECT_EQ("its other end was closed", mine->receive(places).end);
}

TEST_F(Socket, RefusesWhatIsNoStreamSocket) {
    std::array<int, 2> datagrams{};
    ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams.data()));
    const Descriptor second(datagrams[1]);
    const auto refused = StreamSocket::open(Descriptor(datagrams[0]), kTestKeys);
    ASSERT_FALSE(refused);
    EXPECT_EQ(ErrorCode::invalid, refused.error().code());
}

}  // namespace
}  // namespace rove::fabric
