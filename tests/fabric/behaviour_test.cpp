// The behaviour that every fabric must have: one list, run on each of them.
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <iterator>
#include <thread>

#include "fabrics.hpp"
#include "wire/control.hpp"

namespace rove::fabric {
namespace {

constexpr Traffic kBoth[] = {Traffic::calls, Traffic::prompt};

INSTANTIATE_TEST_SUITE_P(On, TwoFabrics, testing::ValuesIn(test_fabrics()),
                         [](const auto& info) { return info.param.name; });

TEST_P(TwoFabrics, FramesOfEverySizeComeInOrder) {
    Joined link = join();
    std::vector<std::size_t> sizes;
    for (std::size_t size = 0; size <= 300; ++size) sizes.push_back(size);
    for (const std::size_t size :
         {4095UL, 4096UL, 65536UL, wire::kPayloadBytesMax, wire::kFrameBytesMax - wire::kHeaderBytes})
        sizes.push_back(size);
    for (const Traffic traffic : kBoth) {
        std::size_t sent = 0, taken = 0;
        EXPECT_TRUE(until([&] {
            if (sent < sizes.size() && send(*link.a, traffic, sent, sizes[sent])) ++sent;
            if (take(*link.b, traffic, taken)) ++taken;
            return taken == sizes.size();
        })) << taken
            << " of " << sent;
    }
    EXPECT_EQ(2 * sizes.size(), link.a->counters().frames_sent);
    EXPECT_EQ(2 * sizes.size(), link.b->counters().frames_received);
    EXPECT_FALSE(link.b->pending());
}

// Both directions and both kinds at once, at every degree of fullness, over what earlier laps left.
TEST_P(TwoFabrics, ManyLapsOverOldBytes) {
    Joined link = join();
    constexpr std::uint64_t kLaps = 12;
    struct Way {
        Link *from, *to;
        Traffic traffic;
        std::uint64_t sent = 0, taken = 0, bytes = 0;
        bool greedy = false;
    };
    std::vector<Way> ways;
    for (const Traffic traffic : kBoth) {
        ways.push_back({link.a.get(), link.b.get(), traffic});
        ways.push_back({link.b.get(), link.a.get(), traffic});
    }
    EXPECT_TRUE(until([&] {
        bool done = true;
        for (Way& way : ways) {
            if (random() % 64 == 0) way.greedy = !way.greedy;  // now the ring fills up, now it is emptied
            for (unsigned burst = random() % (way.greedy ? 32 : 4); burst > 0 && way.bytes < kLaps * kRingBytes;
                 --burst) {
                const std::size_t size = random() % (std::size_t{1} << (random() % 18));
                if (!send(*way.from, way.traffic, way.sent, size)) break;
                ++way.sent;
                way.bytes += size + wire::kHeaderBytes;
            }
            for (unsigned burst = random() % (way.greedy ? 4 : 32); burst > 0 && take(*way.to, way.traffic, way.taken);
                 --burst)
                ++way.taken;
            done = done && way.bytes >= kLaps * kRingBytes && way.taken == way.sent;
        }
        return done || HasFailure() || link.a->broken() != nullptr || link.b->broken() != nullptr;
    }));
    EXPECT_EQ(nullptr, link.a->broken());
    EXPECT_EQ(nullptr, link.b->broken());
}

TEST_P(TwoFabrics, CreditRunsOutAndComesBack) {
    Joined link = join();
    constexpr std::size_t kPayload = 1000;
    std::uint64_t sent = 0, taken = 0;
    while (send(*link.a, Traffic::calls, sent, kPayload)) ++sent;
    EXPECT_EQ(kRingLines / wire::lines_of(kPayload + wire::kHeaderBytes), sent);
    for (unsigned turn = 0; turn < 100; ++turn) progress();
    EXPECT_FALSE(send(*link.a, Traffic::calls, sent, kPayload)) << "nobody has given credit";
    EXPECT_TRUE(until([&] {
        taken += take(*link.b, Traffic::calls, taken) ? 1 : 0;
        return taken == sent;
    }));
    EXPECT_TRUE(until([&] { return send(*link.a, Traffic::calls, sent, kPayload); }));
    EXPECT_TRUE(until([&] { return take(*link.b, Traffic::calls, sent); }));
}

// What a sender can say of frames of which it does not know that they were taken.
TEST_P(TwoFabrics, WhatWasNotTakenCanBeReadBack) {
    Joined link = join();
    constexpr std::size_t kPayload = 5000;
    std::uint64_t sent = 0, taken = 0;
    const auto numbers = [&] {
        const std::vector<ByteBuffer> frames = link.a->untaken(Traffic::prompt);
        for (std::size_t i = 0; i < frames.size(); ++i) {
            const std::uint64_t number = sent - frames.size() + i;
            wire::FrameHeader header;
            std::memcpy(&header, frames[i].data(), sizeof header);
            EXPECT_EQ(static_cast<std::uint32_t>(number), header.handle);
            EXPECT_EQ(kPayload + wire::kHeaderBytes, frames[i].size());
            EXPECT_TRUE(is_filled(Bytes(frames[i]).subspan(wire::kHeaderBytes), number));
        }
        return frames.size();
    };
    for (unsigned lap = 0; lap < 3; ++lap) {  // over the ring's end
        while (send(*link.a, Traffic::prompt, sent, kPayload)) ++sent;
        EXPECT_GE(numbers(), sent - taken);
        EXPECT_TRUE(until([&] {
            taken += take(*link.b, Traffic::prompt, taken) ? 1 : 0;
            return taken == sent;
        }));
        EXPECT_TRUE(until([&] { return numbers() <= kBankLines / wire::lines_of(kPayload); }));
    }
}

// A function may take its time.
TEST_P(TwoFabrics, FramesInUseKeepTheirMemory) {
    for (const std::size_t bytes : {100'000UL, 3'000UL}) {
        Joined link = join();
        for (std::uint64_t number = 0; number < 3; ++number) {
            ASSERT_TRUE(send(*link.a, Traffic::calls, number, 100'000));
            ASSERT_TRUE(until([&] { return take(*link.b, Traffic::calls, number); }));
        }
        ASSERT_TRUE(send(*link.a, Traffic::calls, 3, bytes));
        wire::Frame frame;
        ASSERT_TRUE(until([&] { return link.b->next(Traffic::calls, frame); }));
        const std::uint64_t held = link.b->hold(Traffic::calls);
        for (int look = 0; look < 4; ++look) {
            for (unsigned turn = 0; turn < 20; ++turn) progress();
            (void)link.a->tend_memory();
            (void)link.b->tend_memory();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // another thread frees them
        EXPECT_TRUE(is_filled(frame.payload, 3)) << bytes;
        link.b->let_go(Traffic::calls, held);
    }
}

// Both ends have been quiet: what their rings do not need goes back, and nothing that comes afterwards is lost.
TEST_P(TwoFabrics, MemoryIsGivenBackByLinksThatAreQuiet) {
    Joined link = join();
    std::uint64_t sent = 0, taken = 0;
    unsigned given = 0;
    for (unsigned round = 0; round < 20; ++round) {
        const std::size_t size = random() % (std::size_t{1} << (random() % 18));
        const unsigned burst = random() % 100;
        for (const Traffic traffic : kBoth) {
            std::uint64_t number = sent, next = taken;
            for (unsigned i = 0; i < burst && send(*link.a, traffic, number, size); ++i) ++number;
            EXPECT_TRUE(until([&] {
                next += take(*link.b, traffic, next) ? 1 : 0;
                return next == number;
            }));
            if (traffic == Traffic::prompt) sent = taken = std::max(sent, number);
        }
        for (unsigned look = 0; look < 3; ++look) {
            for (unsigned turn = 0; turn < 20; ++turn) progress();
            given += link.a->tend_memory() ? 1 : 0;
            given += link.b->tend_memory() ? 1 : 0;
        }
    }
    if (GetParam().gives_memory_back)
        EXPECT_GE(given, 2U);
    else
        EXPECT_EQ(given, 0U);
    EXPECT_EQ(nullptr, link.a->broken());
    EXPECT_EQ(nullptr, link.b->broken());
}

// Both ends were busy once; now one calls each second.
TEST_P(TwoFabrics, ALinkThatCarriesLittleKeepsLittle) {
    Joined link = join();
    std::uint64_t sent = 0, taken = 0;
    const auto pass_on = [&](std::size_t bytes, unsigned frames) {
        for (unsigned i = 0; i < frames; ++i) {
            ASSERT_TRUE(until([&] { return send(*link.a, Traffic::calls, sent, bytes); }));
            ++sent;
            if (i % 20 == 19 || i + 1 == frames)
                for (; taken < sent; ++taken) ASSERT_TRUE(until([&] { return take(*link.b, Traffic::calls, taken); }));
        }
    };
    pass_on(20'000, 100);
    unsigned given = 0;
    for (unsigned look = 0; look < 20; ++look) {
        given += link.a->tend_memory() ? 1 : 0;
        given += link.b->tend_memory() ? 1 : 0;
        pass_on(8, 1);
        for (unsigned turn = 0; turn < 20; ++turn) progress();
    }
    if (GetParam().gives_memory_back) EXPECT_GE(given, 1U);
    EXPECT_LE(given, 4U) << "and then it has little, which stays";
    EXPECT_EQ(link.a->broken(), nullptr);
}

// A direct peer can write into what it was sent.
TEST_P(TwoFabrics, WhatWasSpoiltIsNotReadBack) {
    Joined link = join();
    std::byte* spoilt = nullptr;
    for (std::uint64_t number = 0; number < 3; ++number) {
        std::byte* const frame = link.a->reserve(Traffic::prompt, wire::kHeaderBytes + 8);
        ASSERT_NE(nullptr, frame);
        if (number == 1) spoilt = frame;
        link.a->publish(Traffic::prompt, {.body_bytes = 8, .kind = wire::Kind::reply});
    }
    EXPECT_EQ(3U, link.a->untaken(Traffic::prompt).size());
    for (const std::uint32_t bytes : {std::uint32_t{200'000}, UINT32_MAX}) {
        wire::FrameHeader header;
        std::memcpy(&header, spoilt, sizeof header);
        header.body_bytes = bytes;
        std::memcpy(spoilt, &header, sizeof header);
        EXPECT_EQ(1U, link.a->untaken(Traffic::prompt).size()) << bytes;
    }
}

TEST_P(TwoFabrics, TheLargestFrameAlwaysGetsItsRoom) {
    Joined link = join();
    std::uint64_t number = 0;
    for (unsigned round = 0; round < 60; ++round) {
        for (const std::size_t size : {static_cast<std::size_t>(random() % 200'000), wire::kPayloadBytesMax}) {
            ASSERT_TRUE(until([&] { return send(*link.a, Traffic::calls, number, size); })) << round;
            ASSERT_TRUE(until([&] { return take(*link.b, Traffic::calls, number); })) << round;
            ++number;
        }
    }
}

TEST_P(TwoFabrics, PromptFramesFlowWhileCallsAreStuck) {
    Joined link = join();
    std::uint64_t calls = 0;
    while (send(*link.a, Traffic::calls, calls, 5000)) ++calls;
    while (send(*link.b, Traffic::calls, calls, 5000)) {
    }
    for (std::uint64_t number = 0; number < 3 * kRingLines; ++number) {
        ASSERT_TRUE(until([&] { return send(*link.b, Traffic::prompt, number, 8); })) << number;
        ASSERT_TRUE(until([&] { return take(*link.a, Traffic::prompt, number); })) << number;
    }
}

TEST_P(TwoFabrics, AMalformedFrameBreaksItsLinkOnly) {
    Joined bad = join();
    Joined good = join();
    ASSERT_NE(nullptr, bad.a->reserve(Traffic::calls, wire::kHeaderBytes + 32));
    wire::FrameHeader header;
    header.kind = wire::Kind::call;
    header.body_bytes = 32;
    header.extra_bytes = 8;  // no multiple of 16
    bad.a->publish(Traffic::calls, header);
    wire::Frame frame;
    EXPECT_TRUE(until([&] { return !bad.b->next(Traffic::calls, frame) && bad.b->broken() != nullptr; }));
    EXPECT_EQ(ErrorCode::invalid, bad.b->broken()->code());
    EXPECT_EQ(nullptr, bad.b->reserve(Traffic::prompt, wire::kHeaderBytes));
    EXPECT_FALSE(bad.b->pending());

    EXPECT_TRUE(send(*good.a, Traffic::calls, 1, 8));
    EXPECT_TRUE(until([&] { return take(*good.b, Traffic::calls, 1); }));
    EXPECT_EQ(nullptr, good.b->broken());
}

// The fabrics whose links meet by offers: a stream's have their socket.
std::vector<TestFabric> fabrics_with_offers() {
    std::vector<TestFabric> with;
    std::ranges::copy_if(test_fabrics(), std::back_inserter(with),
                         [](const TestFabric& each) { return !each.connect; });
    return with;
}
class FabricsWithOffers : public TwoFabrics {};
INSTANTIATE_TEST_SUITE_P(On, FabricsWithOffers, testing::ValuesIn(fabrics_with_offers()),
                         [](const auto& info) { return info.param.name; });

TEST_P(FabricsWithOffers, OneThatIsCutShortIsRefused) {
    auto a = fabric_a->open_link();
    auto b = fabric_b->open_link();
    ASSERT_TRUE(a && b);
    const ByteBuffer& offer = (*b)->offer();
    EXPECT_LE(offer.size(), wire::control::kOfferBytesMax);
    for (std::size_t size = 0; size < offer.size(); ++size) {
        const Status status = (*a)->connect(Bytes(offer).first(size));
        ASSERT_FALSE(status) << size;
        ASSERT_EQ(ErrorCode::invalid, status.error().code()) << size;
    }
}

TEST_P(TwoFabrics, EitherEndMayCloseFirstWithFramesOnTheirWay) {
    for (unsigned round = 0; round < 8; ++round) {
        Joined link = join();
        for (std::uint64_t number = 0; number < 20; ++number) {
            EXPECT_TRUE(send(*link.a, Traffic::calls, number, 7000));
            EXPECT_TRUE(send(*link.b, Traffic::prompt, number, 7000));
        }
        for (std::uint64_t turn = random() % 4; turn > 0; --turn) progress();
        (round % 2 == 0 ? link.a : link.b).reset();
        for (unsigned turn = 0; turn < 10; ++turn) progress();
    }
}

// Its mailbox fills up, or the transport says that it has gone; no more is written than it had room for, and other links go on.
TEST_P(TwoFabrics, APeerThatIsGoneHurtsNobody) {
    Joined link = join();
    Joined other = join();
    EXPECT_TRUE(send(*link.a, Traffic::calls, 0, 100));
    EXPECT_TRUE(until([&] { return take(*link.b, Traffic::calls, 0); }));
    link.b.reset();
    constexpr std::size_t kPayload = 900;
    std::uint64_t sent = 1;
    EXPECT_TRUE(until([&] {
        if (send(*link.a, Traffic::calls, sent, kPayload)) ++sent;
        return link.a->broken() != nullptr || !link.a->has_room(Traffic::calls, wire::kHeaderBytes + kPayload);
    })) << "it takes frames without end";
    EXPECT_LE(sent, 1 + kRingLines / wire::lines_of(kPayload + wire::kHeaderBytes));
    if (GetParam().tells_of_the_end) {
        EXPECT_TRUE(until([&] { return link.a->broken() != nullptr; })) << "the transport does not say so";
        EXPECT_TRUE(link.a->has_ended());
    }
    if (link.a->broken() != nullptr) {
        EXPECT_EQ(ErrorCode::disconnected, link.a->broken()->code());
        EXPECT_FALSE(send(*link.a, Traffic::calls, sent, kPayload));
    }
    EXPECT_TRUE(send(*other.a, Traffic::calls, 0, 100));
    EXPECT_TRUE(until([&] { return take(*other.b, Traffic::calls, 0); })) << "another link does not go on";
    EXPECT_TRUE(send(*other.b, Traffic::prompt, 0, 100));
    EXPECT_TRUE(until([&] { return take(*other.a, Traffic::prompt, 0); }));
    other.b.reset();
    fabric_b.reset();
    for (std::uint64_t number = 1; number < 5000 && other.a->broken() == nullptr; ++number) {
        (void)send(*other.a, Traffic::calls, number, kPayload);
        fabric_a->progress();
    }
}

// ---- cold links

// A link that may be cold, and the fabric of it.
class Cold : public TwoFabrics {
protected:
    void SetUp() override {
        TwoFabrics::SetUp();
        link = join();
        cool();
        EXPECT_EQ(link.a->is_cold(), link.a->can_be_cold());
    }
    void cool() {
        Link* const links[] = {link.a.get()};
        fabric_a->cool(links);
    }
    // Whether the fabric reports the link, within the time that until() has.
    [[nodiscard]] bool is_reported() {
        return until([&] { return fabric_a->has_warmed(); }) && &fabric_a->take_warmed() == link.a.get() &&
               !link.a->is_cold() && !fabric_a->has_warmed();
    }
    Joined link;
};
INSTANTIATE_TEST_SUITE_P(On, Cold, testing::ValuesIn(fabrics_with_cold_links()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Cold, ALinkIsReportedOnceSomethingArrives) {
    for (std::uint64_t round = 0; round < 3; ++round) {
        for (int turn = 0; turn < 10; ++turn) progress();
        EXPECT_FALSE(fabric_a->has_warmed());
        for (const Traffic traffic : kBoth) {
            ASSERT_TRUE(send(*link.b, traffic, 2 * round, 8));
            ASSERT_TRUE(send(*link.b, traffic, 2 * round + 1, 8));
        }
        ASSERT_TRUE(is_reported()) << round;
        for (const Traffic traffic : kBoth)
            for (std::uint64_t number : {2 * round, 2 * round + 1})
                EXPECT_TRUE(until([&] { return take(*link.a, traffic, number); })) << number;
        // Chaos gives credit back late.
        EXPECT_TRUE(until([&] {
            progress();
            cool();
            while (fabric_a->has_warmed()) (void)fabric_a->take_warmed();
            return link.a->is_cold();
        }));
    }
}

// Over more than one word of the board.
TEST_P(Cold, OnlyTheLinksOverWhichSomethingCameAreReported) {
    constexpr std::size_t kMany = 70;
    std::vector<Joined> links(kMany);
    std::vector<Link*> ends;
    for (Joined& each : links) {
        each = join();
        ends.push_back(each.a.get());
    }
    fabric_a->cool(ends);
    EXPECT_EQ(std::ranges::count_if(links, [](const Joined& each) { return each.a->is_cold(); }), kMany);
    for (const std::size_t chosen : {0UL, 1UL, 63UL, 64UL, kMany - 1}) {
        ASSERT_TRUE(send(*links[chosen].b, Traffic::calls, 0, 8));
        ASSERT_TRUE(until([&] { return fabric_a->has_warmed(); })) << chosen;
        EXPECT_EQ(&fabric_a->take_warmed(), links[chosen].a.get()) << chosen;
        for (int turn = 0; turn < 10; ++turn) progress();
        EXPECT_FALSE(fabric_a->has_warmed()) << chosen;
        EXPECT_TRUE(until([&] { return take(*links[chosen].a, Traffic::calls, 0); }));
    }
    EXPECT_EQ(std::ranges::count_if(links, [](const Joined& each) { return each.a->is_cold(); }), kMany - 5);
}

TEST_P(Cold, ALinkWithSomethingToDeliverStaysWarm) {
    ASSERT_TRUE(send(*link.b, Traffic::calls, 0, 8));
    ASSERT_TRUE(until([&] { return link.a->pending(); }));
    while (fabric_a->has_warmed()) (void)fabric_a->take_warmed();
    cool();
    EXPECT_TRUE(fabric_a->has_warmed() || !link.a->is_cold());
    EXPECT_TRUE(take(*link.a, Traffic::calls, 0));
}

TEST_P(Cold, ALinkByWhichSomethingIsSentIsReported) {
    ASSERT_TRUE(send(*link.a, Traffic::calls, 0, 8));
    EXPECT_TRUE(is_reported());
    EXPECT_TRUE(until([&] { return take(*link.b, Traffic::calls, 0); }));
}

// The leader sleeps, another thread sends a call, and the answer must wake the leader: nobody looks at the board for a link that is not cold.
TEST_P(Cold, ALinkByWhichSomethingIsSentWhileItsOwnerSleepsWakesIt) {
    ASSERT_TRUE(fabric_a->announce_sleep());
    ASSERT_TRUE(send(*link.a, Traffic::calls, 0, 8));
    ASSERT_TRUE(send(*link.b, Traffic::prompt, 0, 8));
    const auto is_woken = [&] {
        for (const int descriptor : fabric_a->descriptors()) {
            pollfd waits{.fd = descriptor, .events = POLLIN, .revents = 0};
            if (poll(&waits, 1, 0) == 1) return true;
        }
        return false;
    };
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!is_woken() && std::chrono::steady_clock::now() < limit) fabric_b->progress();
    EXPECT_TRUE(is_woken());
    fabric_a->end_sleep();
    EXPECT_TRUE(until([&] { return take(*link.a, Traffic::prompt, 0); }));
    EXPECT_TRUE(until([&] { return take(*link.b, Traffic::calls, 0); }));
}

TEST_P(Cold, ALinkThatBreaksIsReported) {
    link.a->break_with(Error(ErrorCode::invalid, "broken by the test"));
    EXPECT_TRUE(is_reported());
}

TEST_P(Cold, ALinkThatEndsIsReportedWhereItsTransportSaysSo) {
    link.b.reset();
    if (GetParam().tells_of_the_end) {
        EXPECT_TRUE(is_reported());
        EXPECT_NE(link.a->broken(), nullptr);
    } else {
        for (int turn = 0; turn < 100; ++turn) fabric_a->progress();
        EXPECT_TRUE(link.a->is_cold());
    }
}

TEST_P(Cold, ALinkMayBeDestroyedHoweverWarmItIs) {
    Joined other = join();
    ASSERT_TRUE(send(*link.b, Traffic::calls, 0, 8));
    ASSERT_TRUE(until([&] { return fabric_a->has_warmed(); }));
    link = {};  // it was not asked for
    EXPECT_FALSE(fabric_a->has_warmed());
    Link* const links[] = {other.a.get()};
    fabric_a->cool(links);
    EXPECT_TRUE(other.a->is_cold());
    other = {};
    EXPECT_FALSE(fabric_a->has_cold());
    for (int turn = 0; turn < 10; ++turn) progress();
    EXPECT_FALSE(fabric_a->has_warmed());
}

// One end of a ping-pong that sleeps, without a time-out of its own, whenever nothing is there. Where its link may be cold, it also has it
// cold by then, and does not look at it before it is told to.
class Sleeper {
public:
    Sleeper(Fabric& fabric, Link& link, bool cools = false) : fabric_(fabric), link_(link), cools_(cools) {}

    // False: nothing came for so long that a wake-up must have been lost.
    bool take_next(Traffic traffic, std::uint64_t number) {
        while (link_.is_cold() || !take(link_, traffic, number)) {
            if (link_.broken() != nullptr) return false;
            const unsigned events = fabric_.progress();
            if (is_warmed() || events > 0) continue;
            if (!link_.is_cold() && cools_) {
                Link* const links[] = {&link_};
                fabric_.cool(links);
                if (link_.is_cold()) ++cooled;
                if (number % 2 == 0) continue;  // sometimes it looks at the board first
            }
            if (!sleep()) return false;
        }
        return true;
    }
    unsigned slept = 0, cooled = 0;

private:
    bool is_warmed() {
        if (!fabric_.has_warmed()) return false;
        return &fabric_.take_warmed() == &link_;
    }
    bool sleep() {
        bool woken = true;
        const TimePoint now = Clock::now();
        if (fabric_.announce_sleep() && !fabric_.may_have_warmed(now) && (link_.is_cold() || !link_.pending())) {
            std::vector<pollfd> wanted;
            for (const int descriptor : fabric_.descriptors()) wanted.push_back({descriptor, POLLIN, 0});
            ++slept;
            const bool looks_again = fabric_.warmed_not_before(now).has_value();
            woken = poll(wanted.data(), wanted.size(), looks_again ? 1 : 10'000) > 0 || looks_again;
        }
        fabric_.end_sleep();
        return woken;
    }

    Fabric& fabric_;
    Link& link_;
    const bool cools_;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer)
constexpr std::uint64_t kManyRaces = 100'000;
#else
constexpr std::uint64_t kManyRaces = 1'000'000;
#endif

// What it takes to find a wake-up that is lost once in a million: the lanes of shared memory, where plain stores wake nobody. To
// look harder, run several at once: the loss that this found came with the machine overloaded. A machine that is busy makes each
// race a switch between threads, and gets fewer of them.
class Races : public TwoFabrics {
protected:
    void race(bool cools);
};
INSTANTIATE_TEST_SUITE_P(On, Races, testing::ValuesIn(test_fabrics()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Races, NoWakeUpIsLost) {
    race(false);
}

TEST_P(Races, NoFrameOverAColdLinkIsMissed) {
    race(true);
}

void Races::race(bool cools) {
    constexpr auto kTimeMax = std::chrono::seconds(30);
    Joined link = join();
    std::atomic<std::uint64_t> races = GetParam().name == "direct"    ? kManyRaces
                                       : GetParam().name == "ucx_shm" ? 100'000
                                                                      : 10'000;
    std::atomic<bool> lost = false;
    std::thread other([&] {
        Sleeper sleeper(*fabric_b, *link.b, cools);
        for (std::uint64_t number = 0; number < races && !lost; ++number)
            if (!sleeper.take_next(Traffic::calls, number) || !send(*link.b, Traffic::prompt, number, 8)) lost = true;
        // Chaos carries the last reply only while it is driven.
        for (unsigned turn = 0; turn < 1000; ++turn) fabric_b->progress();
    });
    Sleeper sleeper(*fabric_a, *link.a, cools);
    std::uint64_t number = 0;
    const auto until = std::chrono::steady_clock::now() + kTimeMax;
    for (; number < races && !lost; ++number) {
        if (number % 1024 == 0 && std::chrono::steady_clock::now() > until) races = number + 1;
        // Sometimes the other is asleep by now, sometimes about to be.
        for (std::uint64_t wait = random() % 256; wait > 0; --wait) std::atomic_signal_fence(std::memory_order_seq_cst);
        if (!send(*link.a, Traffic::calls, number, 8) || !sleeper.take_next(Traffic::prompt, number)) break;
    }
    if (number < races) lost = true;
    other.join();
    EXPECT_EQ(races.load(), number);
    RecordProperty("races", static_cast<int>(number));
    RecordProperty("slept", static_cast<int>(sleeper.slept));
    RecordProperty("cooled", static_cast<int>(sleeper.cooled));
    EXPECT_GT(sleeper.slept, 0U);
    EXPECT_EQ(sleeper.cooled > 0, cools && link.a->can_be_cold());
}

}  // namespace
}  // namespace rove::fabric
