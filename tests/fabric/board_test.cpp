// The board by itself: which links it warms for which bits, and how often it looks at bits that are set in vain.
#include "fabric/board.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
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
    bool announces = false;    // its sender has yet to say something
    std::uint64_t frames = 0;  // that have arrived

protected:
    void announce_cold(bool cold) noexcept override { announces = cold; }
    void announce_again() noexcept override { announces = true; }
    [[nodiscard]] std::uint64_t frames_seen() const override { return frames; }
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
        if (board_.take()) board_.look_at_doubted();
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
        for (const std::uint32_t sender : senders) {
            ++all_[sender].link->frames;
            cold_.add(*all_[sender].link);
        }
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
    (void)board_.take();
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
    TimePoint before{};
    unsigned spun_on = 0;
    constexpr unsigned kRounds = 20;
    for (unsigned i = 0; i < kRounds; ++i) {
        before = Clock::now();
        set_in_vain();
        EXPECT_EQ(taken(), std::vector<std::uint32_t>{});
        // The first of these times is half a microsecond. The last is asked about below.
        if (i + 1 < kRounds) spun_on += board_.summary() != nullptr ? 1 : 0;
    }
    EXPECT_LT(spun_on, kRounds - 1) << "nobody is to spin on it";
    set_in_vain();
    (void)set(honest);
    EXPECT_TRUE(board_.is_set());
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto ignored = board_.ignored_until(before);
    ASSERT_TRUE(ignored) << "who would sleep is to look again then";
    EXPECT_LT(*ignored, Clock::now() + std::chrono::seconds(1));
    bool due = false;
    while (!(due = board_.is_due()) && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    ASSERT_TRUE(due);
    EXPECT_GE(Clock::now(), *ignored);
    EXPECT_FALSE(board_.ignored_until(Clock::now()));
    std::vector<std::uint32_t> seen;
    while (seen.empty() && board_.is_set()) seen = taken();  // some bits at a time
    EXPECT_EQ(seen, std::vector<std::uint32_t>{honest.place});
    while (board_.is_set()) EXPECT_EQ(taken(), std::vector<std::uint32_t>{});
    ++honest.link->frames;
    cold_.add(*honest.link);
    (void)set(honest);
    (void)taken();
    EXPECT_NE(board_.summary(), nullptr) << "no bit was in vain";
}

// One look takes a word of bits in vain or two, and the next one goes on where it ended: each bit is seen, wherever the others are.
TEST_F(BoardByItself, ALookTakesFewBitsInVain) {
    std::vector<std::uint32_t> places;
    for (unsigned i = 0; i < kBoardPlaces; ++i) {
        Placed& added = add();
        if (i % 1000 != 999)
            added.link->announces = true;  // its bit will mean nothing
        else
            places.push_back(added.place);
    }
    const auto set_all = [&] {
        for (std::uint32_t place = 0; place < kBoardPlaces; ++place) (void)PlaceOnBoard(*memory_, place).set();
    };
    const auto bits = [&] {
        unsigned set = 0;
        for (const auto& group : memory_->groups)
            for (const std::uint64_t word : group) set += static_cast<unsigned>(std::popcount(word));
        return set;
    };
    for (const std::uint32_t place : places) all_[place].link->announces = false;
    std::vector<std::uint32_t> seen;
    for (unsigned look = 0; look < 2 * kBoardPlaces / 64 && seen.size() < places.size(); ++look) {
        set_all();
        const unsigned before = bits();
        for (const std::uint32_t place : taken()) seen.push_back(place);
        EXPECT_LE(before - bits(), Board::kVainMax + 64);
    }
    std::ranges::sort(seen);
    EXPECT_EQ(seen, places);
}

// A sender that says something in vain is believed no more, until a frame comes with it.
TEST_F(BoardByItself, ABitInVainIsBelievedOnce) {
    Placed& one = add();
    (void)set(one);
    EXPECT_EQ(taken(), std::vector<std::uint32_t>{one.place});
    cold_.add(*one.link);
    for (int time = 0; time < 2; ++time) {
        (void)set(one);
        EXPECT_EQ(taken(), std::vector<std::uint32_t>{});
        EXPECT_TRUE(one.link->announces) << "its sender is to say so again";
        EXPECT_EQ(board_.summary(), nullptr) << "the fence after it is not to be for each turn";
    }
    ++one.link->frames;
    (void)set(one);
    EXPECT_EQ(taken(), std::vector<std::uint32_t>{one.place});
    cold_.add(*one.link);
    (void)set(one);
    EXPECT_EQ(taken(), std::vector<std::uint32_t>{one.place}) << "it was right the last time";
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
