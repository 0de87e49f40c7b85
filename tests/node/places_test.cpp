// The places that a node has for those who come: how many there are, who makes room, and that each is given back.
#include "control/places.hpp"

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include "raw_meeting.hpp"

namespace rove::test {
namespace {

using control::Channel;
using control::ClientIndex;
using control::ClientIndexes;
using control::Strangers;

TEST(ClientPlaces, AreTakenOnceAndGivenBack) {
    ClientIndexes all(3);
    std::vector<ClientIndex> held;
    for (const std::uint16_t expected : {0, 1, 2}) {
        auto one = all.take();
        ASSERT_TRUE(one);
        EXPECT_EQ(one->value(), expected);
        held.push_back(std::move(*one));
    }
    const auto more = all.take();
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code(), ErrorCode::overloaded);
    EXPECT_NE(more.error().message().find("3 clients"), std::string::npos) << more.error().message();
    held.erase(held.begin() + 1);
    auto again = all.take();
    ASSERT_TRUE(again);
    EXPECT_EQ(again->value(), 1U) << "the others are still taken";
    EXPECT_FALSE(all.take());
    held.clear();
    again = ClientIndex();
    auto next = all.take();
    ASSERT_TRUE(next);
    EXPECT_EQ(next->value(), 2U) << "none is given again at once";
}

// Connections between a node and strangers, without a node.
class UnprovenPlaces : public testing::Test {
protected:
    // A connection, and the stranger's end of it.
    struct Guest {
        Guest(Strangers& strangers, asio::io_context& io, std::set<Channel*>& open) {
            int ends[2] = {-1, -1};
            EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
            stranger = ends[1];
            channel = std::make_shared<Channel>(
                control::Socket(io, asio::generic::stream_protocol(AF_UNIX, 0), ends[0]), open);
            place = std::make_unique<Strangers::Place>(strangers, channel);
        }
        // Over TCP, which is another origin than this process.
        Guest(Strangers& strangers, asio::ip::tcp::acceptor& acceptor, std::set<Channel*>& open) {
            asio::ip::tcp::socket other(acceptor.get_executor());
            other.connect(acceptor.local_endpoint());
            stranger = other.release();
            channel = std::make_shared<Channel>(acceptor.accept(), open);
            place = std::make_unique<Strangers::Place>(strangers, channel);
        }
        Guest(Guest&& other) noexcept
            : stranger(std::exchange(other.stranger, -1)),
              channel(std::move(other.channel)),
              place(std::move(other.place)) {}
        ~Guest() {
            if (stranger >= 0) ::close(stranger);
        }
        [[nodiscard]] bool is_closed() const {
            char byte = 0;
            return ::recv(stranger, &byte, 1, MSG_DONTWAIT) == 0;
        }
        int stranger = -1;
        std::shared_ptr<Channel> channel;
        std::unique_ptr<Strangers::Place> place;
    };
    Guest comes(Strangers& strangers) { return {strangers, io_, open_}; }

    asio::io_context io_;
    asio::ip::tcp::acceptor acceptor_{io_, {asio::ip::make_address("127.0.0.1"), 0}};
    std::set<Channel*> open_;
};

TEST_F(UnprovenPlaces, AreNeverMoreThanTheirBound) {
    Strangers strangers;
    std::vector<Guest> guests;
    for (std::size_t i = 0; i < 2 * control::kUnprovenMax; ++i) {
        guests.push_back(comes(strangers));
        EXPECT_LE(strangers.count(), control::kUnprovenMax);
    }
    for (std::size_t i = 0; i < guests.size(); ++i)
        EXPECT_EQ(guests[i].is_closed(), i < control::kUnprovenMax) << "the oldest make room; this is number " << i;
    guests.clear();
    EXPECT_EQ(strangers.count(), 0U);
}

TEST_F(UnprovenPlaces, AreGivenUpByWhoSaidNothingFirst) {
    Strangers strangers(3);
    std::vector<Guest> guests;
    for (int i = 0; i < 3; ++i) guests.push_back(comes(strangers));
    guests[0].place->challenged();
    guests.push_back(comes(strangers));
    EXPECT_FALSE(guests[0].is_closed());
    EXPECT_TRUE(guests[1].is_closed());
    EXPECT_FALSE(guests[2].is_closed());
    guests[2].place->proven();
    EXPECT_EQ(strangers.count(), 2U);
    guests.push_back(comes(strangers));
    EXPECT_FALSE(guests[2].is_closed()) << "who has proven itself has no place to give up";
    EXPECT_EQ(strangers.count(), 3U);
}

// All of these are of this process, and have said hello: the oldest goes, whether it has had its time or not.
TEST_F(UnprovenPlaces, AreGivenUpByTheOldestOfOneOrigin) {
    for (const Duration proof_time : {Duration(std::chrono::hours(1)), Duration(0)}) {
        Strangers strangers(3, proof_time);
        std::vector<Guest> guests;
        for (int i = 0; i < 5; ++i) {
            guests.push_back(comes(strangers));
            guests.back().place->challenged();
        }
        for (std::size_t i = 0; i < guests.size(); ++i) EXPECT_EQ(guests[i].is_closed(), i < 2) << i;
    }
}

// One comes from elsewhere, and then three of one process for three places. The one stays, until it has had its time.
TEST_F(UnprovenPlaces, AreGivenUpByWhoHasHadItsTimeBeforeWhoComesInNumbers) {
    for (const bool has_had_its_time : {false, true}) {
        Strangers strangers(3, has_had_its_time ? Duration(0) : Duration(std::chrono::hours(1)));
        Guest first(strangers, acceptor_, open_);
        first.place->challenged();
        std::vector<Guest> guests;
        for (int i = 0; i < 3; ++i) {
            guests.push_back(comes(strangers));
            guests.back().place->challenged();
        }
        EXPECT_EQ(first.is_closed(), has_had_its_time);
        EXPECT_EQ(guests[0].is_closed(), !has_had_its_time);
    }
}

// Whoever can take a port there can take any of its 16 million addresses.
TEST(Origins, AllOfLoopbackIsOne) {
    asio::io_context io;
    std::set<Channel*> open;
    asio::ip::tcp::acceptor acceptor(io, {asio::ip::make_address("127.0.0.1"), 0});
    for (const char* address : {"127.0.0.1", "127.0.0.2", "127.9.8.7"}) {
        asio::ip::tcp::socket stranger(io, {asio::ip::make_address(address), 0});
        stranger.connect(acceptor.local_endpoint());
        EXPECT_EQ(std::make_shared<Channel>(acceptor.accept(), open)->origin(), "loopback");
    }
}

}  // namespace
}  // namespace rove::test
