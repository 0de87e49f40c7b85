// The board by itself: which links it warms for which bits, and how often it looks at bits that are set in vain.
#include "fabric/board.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "fabric/cold_links.hpp"

namespace rove::fabric {
namespace {

// A link of which only its warmth is real.
class OnlyCold final : public MayBeCold {
public:
    [[nodiscard]] bool can_be_cold() const override { return true; }
    [[nodiscard]] bool announces_cold() const override { return announces; }
    bool announces = false;  // its sender has yet to say something

protected:
    void announce_cold(bool cold) noexcept override { announces = cold; }
};

class BoardByItself : public testing::Test {
protected:
    // A cold link with a place on the board.
    struct Placed {
        std::unique_ptr<OnlyCold> link = std::make_unique<OnlyCold>();
        std::uint32_t place = 0;
    };
    Placed& add() {
        Placed& added = all_.emplace_back();
        added.place = board_.give_place(*added.link).value();
        cold_.add(*added.link);
        return added;
    }
    // As the sender does: takes the announcement, and sets its bit.
    bool set(const Placed& of) {
        of.link->announces = false;
        return PlaceOnBoard(*memory_, of.place).set();
    }
    // The places of the links that have become warm, in their order.
    std::vector<std::uint32_t> taken() {
        board_.take();
        std::vector<std::uint32_t> places;
        while (cold_.has_warmed()) {
            const MayBeCold* const warmed = &cold_.take_warmed();
            for (const Placed& each : all_)
                if (each.link.get() == warmed) places.push_back(each.place);
        }
        std::ranges::sort(places);
        return places;
    }

    std::unique_ptr<BoardMemory> memory_ = std::make_unique<BoardMemory>();
    ColdLinks cold_;
    Board board_{*memory_};
    std::vector<Placed> all_;
};

TEST_F(BoardByItself, ABitIsThatOfItsSender) {
    for (unsigned i = 0; i < 600; ++i) (void)add();
    for (const std::vector<std::uint32_t>& senders :
         {std::vector<std::uint32_t>{0}, {31}, {32}, {63}, {64}, {255, 256}, {1, 65, 257, 599}}) {
        EXPECT_FALSE(board_.is_set());
        for (const std::uint32_t sender : senders) EXPECT_FALSE(set(all_[sender])) << "the owner does not sleep";
        EXPECT_TRUE(board_.is_due());
        EXPECT_EQ(taken(), senders);
        for (const std::uint32_t sender : senders) cold_.add(*all_[sender].link);
    }
}

TEST_F(BoardByItself, APlaceIsUsedAgain) {
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(add().place, i);
    board_.take_back(1);
    EXPECT_EQ(add().place, 1U);
    EXPECT_EQ(add().place, 3U);
}

TEST_F(BoardByItself, HasAPlaceForSoManyAndNoMore) {
    OnlyCold link;
    for (std::uint32_t place = 0; place < kBoardPlaces; ++place) ASSERT_EQ(board_.give_place(link), place);
    EXPECT_EQ(board_.give_place(link), std::nullopt);
    board_.take_back(kBoardPlaces - 1);
    EXPECT_EQ(board_.give_place(link), kBoardPlaces - 1);
}

TEST_F(BoardByItself, OneSenderWakesTheOwner) {
    const Placed first = {.link = nullptr, .place = add().place}, second = {.link = nullptr, .place = add().place};
    board_.announce_sleep(true);
    EXPECT_TRUE(PlaceOnBoard(*memory_, first.place).set());
    EXPECT_FALSE(PlaceOnBoard(*memory_, second.place).set()) << "the first one wakes it";
    board_.announce_sleep(true);
    board_.announce_sleep(false);
    EXPECT_FALSE(PlaceOnBoard(*memory_, first.place).set());
}

TEST_F(BoardByItself, ASenderGivesWhatIsWanted) {
    const PlaceOnBoard sender(*memory_, add().place);
    EXPECT_FALSE(sender.give(Wanted::nothing));
    EXPECT_TRUE(sender.give(Wanted::bell));
    EXPECT_FALSE(board_.is_set());
    EXPECT_FALSE(sender.give(Wanted::bit));
    EXPECT_TRUE(board_.is_set());
    board_.take();
    board_.announce_sleep(true);
    EXPECT_TRUE(sender.give(Wanted::bit));
}

// A hostile sender sets all bits again and again: the owner looks less often, and another one's bit is seen in the end.
TEST_F(BoardByItself, BitsInVainAreLookedAtLessOften) {
    Placed& honest = add();
    const auto set_in_vain = [&] {
        for (std::uint32_t place = 100; place < 200; ++place) (void)PlaceOnBoard(*memory_, place).set();
    };
    EXPECT_NE(board_.summary(), nullptr);
    for (int i = 0; i < 20; ++i) {
        set_in_vain();
        EXPECT_EQ(taken(), std::vector<std::uint32_t>{});
        EXPECT_EQ(board_.summary(), nullptr) << "nobody is to spin on it";
    }
    set_in_vain();
    (void)set(honest);
    EXPECT_TRUE(board_.is_set());
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!board_.is_due() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    ASSERT_TRUE(board_.is_due());
    EXPECT_EQ(taken(), std::vector<std::uint32_t>{honest.place});
    cold_.add(*honest.link);
    (void)set(honest);
    (void)taken();
    EXPECT_NE(board_.summary(), nullptr) << "no bit was in vain";
}

// Its sender took a later announcement, and has not said what it sent before that.
TEST_F(BoardByItself, ABitWhoseAnnouncementStandsWarmsNothing) {
    Placed& one = add();
    (void)PlaceOnBoard(*memory_, one.place).set();
    EXPECT_EQ(taken(), std::vector<std::uint32_t>{});
    (void)set(one);
    EXPECT_EQ(taken(), std::vector<std::uint32_t>{one.place});
}

TEST_F(BoardByItself, ALinkThatIsDestroyedIsInNoList) {
    for (unsigned i = 0; i < 3; ++i) (void)add();
    all_[1].link->warm();
    EXPECT_TRUE(cold_.has_warmed());
    for (Placed& each : all_) {
        board_.take_back(each.place);
        each.link.reset();
    }
    EXPECT_FALSE(cold_.has_warmed());
    EXPECT_TRUE(cold_.cold().empty());
}

}  // namespace
}  // namespace rove::fabric
