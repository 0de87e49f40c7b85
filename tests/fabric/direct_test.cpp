// The promises of direct lanes beyond the common list: a peer's offer is checked, and nothing that a peer does takes memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "../mailbox_memory.hpp"
#include "base/descriptor.hpp"
#include "direct_links.hpp"
#include "fabric/direct/lanes.hpp"
#include "fabric/loopback/loopback.hpp"
#include "fabric/mapped_region.hpp"
#include "fabric/proc_file.hpp"

namespace rove::fabric {
namespace {

// A memory file that is all that a mailbox should be, but for what the caller leaves out.
Descriptor memory_file(std::size_t bytes, int seals, std::uint64_t owner) {
    Descriptor file(memfd_create("rove-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(0, ftruncate(file.number(), static_cast<off_t>(bytes)));
    EXPECT_EQ(8, pwrite(file.number(), &owner, sizeof owner, offsetof(Region, owner)));
    if (seals != 0) {
        EXPECT_EQ(0, fcntl(file.number(), F_ADD_SEALS, seals));
    }
    return file;
}

TEST_F(Direct, AnOfferIsTakenAsItIsDocumented) {
    const Offer offer = Offer::of(a->offer());
    EXPECT_EQ(113U, a->offer().size());
    EXPECT_EQ(7U, offer.version);
    EXPECT_EQ(static_cast<std::uint32_t>(getpid()), offer.pid);
    EXPECT_EQ(a->offer(), offer.bytes());
    EXPECT_TRUE(b->connect(offer.bytes()));
    EXPECT_EQ(Lane::direct, b->lane());
}

TEST_F(Direct, OffersOfAnythingElseAreRefused) {
    const auto wrong = [this](const std::string& what, auto spoil) {
        Offer offer = Offer::of(a->offer());
        spoil(offer);
        expect_refused(offer, what);
    };
    wrong("another version", [](Offer& offer) { ++offer.version; });
    wrong("another machine", [](Offer& offer) { offer.boot_id[5] ^= 1; });
    wrong("another process", [](Offer& offer) { offer.pid = 1; });
    wrong("no process", [](Offer& offer) { offer.pid = 0x7FFF'FFFF; });
    wrong("another token", [](Offer& offer) { offer.token ^= 1; });
    wrong("another descriptor", [](Offer& offer) { offer.mailbox.descriptor = 0; });
    wrong("no descriptor", [](Offer& offer) { offer.mailbox.descriptor = UINT32_MAX; });
    wrong("another inode", [](Offer& offer) { ++offer.mailbox.inode; });
    wrong("another device", [](Offer& offer) { ++offer.mailbox.device; });
    wrong("another doorbell", [](Offer& offer) { ++offer.bell.inode; });
    wrong("a doorbell that is a file", [](Offer& offer) { offer.bell = offer.mailbox; });
    wrong("another board", [](Offer& offer) { ++offer.board.inode; });
    wrong("a board that is a mailbox", [](Offer& offer) { offer.board = offer.mailbox; });
    wrong("a mailbox that is a board", [](Offer& offer) { offer.mailbox = offer.board; });
    wrong("a mailbox that is a pipe", [](Offer& offer) { offer.mailbox = offer.bell; });
    // What this end sends must not come back as what it receives.
    expect_refused(Offer::of(b->offer()), "its own mailbox");
    EXPECT_TRUE(b->connect(a->offer())) << "the link is as good as new";
}

TEST_F(Direct, AMailboxThatIsNoSealedMemoryFileOfTheRightSizeIsRefused) {
    constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    const std::uint64_t token = Offer::of(a->offer()).token;
    const Descriptor right = memory_file(sizeof(Region), kSeals, token);
    ASSERT_TRUE(b->connect(with_mailbox(right.number()).bytes()));
    b = std::move(*fabric_b->open_link());
    const struct {
        const char* what;
        std::size_t bytes;
        int seals;
    } wrongs[] = {{"not sealed", sizeof(Region), 0},
                  {"free to shrink", sizeof(Region), F_SEAL_GROW | F_SEAL_SEAL},
                  {"free to grow", sizeof(Region), F_SEAL_SHRINK | F_SEAL_SEAL},
                  {"too short", sizeof(Region) - 4096, kSeals},
                  {"too long", sizeof(Region) + 4096, kSeals},
                  {"not to be written", sizeof(Region), kSeals | F_SEAL_WRITE}};
    for (const auto& wrong : wrongs) {
        const Descriptor file = memory_file(wrong.bytes, wrong.seals, token);
        expect_refused(with_mailbox(file.number()), wrong.what);
    }
    std::string path = std::filesystem::temp_directory_path() / "rove-test-XXXXXX";
    const Descriptor on_disk(mkstemp(path.data()));
    unlink(path.c_str());
    ASSERT_EQ(0, ftruncate(on_disk.number(), sizeof(Region)));
    expect_refused(with_mailbox(on_disk.number()), "a file on a disk");
}

// The file system of any other file may be one that never answers.
TEST_F(Direct, OnlyMemoryFilesAndPipesAreOpened) {
    const auto pid = static_cast<std::uint32_t>(getpid());
    std::string path = std::filesystem::temp_directory_path() / "rove-test-XXXXXX";
    const Descriptor on_disk(mkstemp(path.data()));
    unlink(path.c_str());
    const auto other = ProcFile::of(on_disk.number())->open(pid, S_IFREG);
    ASSERT_FALSE(other);
    EXPECT_EQ(ErrorCode::unsupported, other.error().code()) << other.error().message();
    ASSERT_EQ(0, mkfifo(path.c_str(), 0600));
    const Descriptor named(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    unlink(path.c_str());
    const auto pipe = ProcFile::of(named.number())->open(pid, S_IFIFO);
    ASSERT_FALSE(pipe);
    EXPECT_EQ(ErrorCode::unsupported, pipe.error().code()) << pipe.error().message();
}

// It could be a file that somebody else has open, and writes.
TEST_F(Direct, AMailboxOfAnotherUserIsRefused) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
    const Descriptor file =
        memory_file(sizeof(Region), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, Offer::of(a->offer()).token);
    ASSERT_EQ(0, fchown(file.number(), 65534, 65534));
    expect_refused(with_mailbox(file.number()), "another user's");
}

// Touching what the peer has cut off would be SIGBUS.
TEST_F(Direct, APeerCannotCutAMailboxOff) {
    const Offer offer = Offer::of(a->offer());
    const auto file = offer.mailbox.open(offer.pid, S_IFREG);
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_NE(0, ftruncate(file->number(), 0));
    EXPECT_NE(0, ftruncate(file->number(), 2 * sizeof(Region)));
    EXPECT_NE(0, fcntl(file->number(), F_ADD_SEALS, F_SEAL_WRITE));
}

std::size_t count_lines(const char* file) {
    std::ifstream in(file);
    return static_cast<std::size_t>(
        std::count(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>(), '\n'));
}
TEST_F(Direct, TheMailboxFileIsClosedOnceThePeerHasMappedIt) {
    const std::size_t before = count_descriptors();
    ASSERT_TRUE(a->connect(b->offer()) && b->connect(a->offer()));
    EXPECT_EQ(before + 2, count_descriptors());  // each has the other's doorbell
    a->settled();
    b->settled();
    EXPECT_EQ(before, count_descriptors());
    ASSERT_TRUE(send(*a, Traffic::calls, 1, 100));
    EXPECT_TRUE(take(*b, Traffic::calls, 1));
}

TEST_F(Direct, TwoThousandLinksLeaveNothingBehind) {
    const std::size_t mappings = count_lines("/proc/self/maps"), descriptors = count_descriptors();
    for (unsigned i = 0; i < 2000; ++i) {
        auto first = fabric_a->open_link();
        auto second = fabric_b->open_link();
        ASSERT_TRUE(first && second) << i;
        if (i % 4 == 0) continue;  // never connected
        ASSERT_TRUE((*first)->connect((*second)->offer())) << i;
        if (i % 4 == 1) continue;  // at one end only
        ASSERT_TRUE((*second)->connect((*first)->offer())) << i;
        if (i % 4 == 2) (*first)->settled();
        ASSERT_TRUE(send(**first, Traffic::calls, i, 100)) << i;
    }
    // The allocator may keep some mappings of its own, a sanitizer's more of them; each kind of link was made 500 times.
    EXPECT_LE(count_lines("/proc/self/maps"), mappings + 100);
    EXPECT_EQ(descriptors, count_descriptors());
}

TEST_F(Direct, APlaceBeyondTheBoardIsRefused) {
    Offer offer = Offer::of(a->offer());
    offer.place = kBoardPlaces;
    EXPECT_EQ(b->connect(offer.bytes()).error().code(), ErrorCode::invalid);
    offer.place = kBoardPlaces - 1;
    EXPECT_TRUE(b->connect(offer.bytes()));
}

// A peer that has a place on the board can write all of it.
TEST_F(Direct, BitsThatOthersClearAreMadeUpForWhenAllMailboxesAreLookedAt) {
    ASSERT_TRUE(a->connect(b->offer()) && b->connect(a->offer()));
    const MappedBoard board = board_of(a->offer());
    ASSERT_TRUE(board);
    Link* const cold[] = {a.get()};
    fabric_a->cool(cold);
    ASSERT_TRUE(send(*b, Traffic::calls, 1, 8));
    ASSERT_NE(board->summary, 0U);
    board->summary = 0;
    EXPECT_FALSE(fabric_a->has_warmed());
    fabric_a->look_at_cold(1);
    ASSERT_TRUE(fabric_a->has_warmed());
    EXPECT_EQ(&fabric_a->take_warmed(), a.get());
    EXPECT_TRUE(take(*a, Traffic::calls, 1));
}

TEST_F(Direct, ColdMailboxesAreLookedAtByTurns) {
    constexpr std::size_t kLinks = 5;
    std::vector<std::unique_ptr<Link>> mine, theirs;
    for (std::size_t i = 0; i < kLinks; ++i) {
        mine.push_back(std::move(*fabric_a->open_link()));
        theirs.push_back(std::move(*fabric_b->open_link()));
        ASSERT_TRUE(mine[i]->connect(theirs[i]->offer()) && theirs[i]->connect(mine[i]->offer()));
        Link* const cold[] = {mine[i].get()};
        fabric_a->cool(cold);
    }
    const MappedBoard board = board_of(mine[0]->offer());
    ASSERT_TRUE(send(*theirs[0], Traffic::calls, 1, 8));
    board->summary = 0;
    for (std::size_t looks = 0; looks < kLinks && !fabric_a->has_warmed(); ++looks) fabric_a->look_at_cold(1);
    ASSERT_TRUE(fabric_a->has_warmed());
    EXPECT_EQ(&fabric_a->take_warmed(), mine[0].get());
    fabric_a->look_at_cold(kLinks);
    EXPECT_FALSE(fabric_a->has_warmed());
}

TEST_F(Direct, BitsThatAreSetInVainWarmNothingAndAreLookedAtLessOften) {
    ASSERT_TRUE(a->connect(b->offer()) && b->connect(a->offer()));
    const MappedBoard board = board_of(a->offer());
    ASSERT_TRUE(board);
    Link* const cold[] = {a.get()};
    fabric_a->cool(cold);
    const auto set_all = [&board] {
        for (auto& group : board->groups)
            for (std::uint64_t& word : group) std::atomic_ref(word).store(~std::uint64_t{0});
        std::atomic_ref(board->summary).store(~std::uint64_t{0});
    };
    unsigned looks = 0;
    constexpr unsigned kTurns = 10'000;
    for (unsigned turn = 0; turn < kTurns; ++turn) {
        set_all();
        EXPECT_FALSE(fabric_a->has_warmed());
        std::size_t cleared = 0;
        for (auto& group : board->groups)
            for (std::uint64_t& word : group) cleared += std::atomic_ref(word).load() == 0 ? 1 : 0;
        EXPECT_LE(cleared, 1U) << "one look takes few bits";
        looks += cleared > 0 ? 1 : 0;
    }
    EXPECT_TRUE(a->is_cold());
    EXPECT_LT(looks, kTurns / 10);
    EXPECT_GT(looks, 1U);
    const TimePoint now = Clock::now();
    EXPECT_TRUE(fabric_a->may_have_warmed(now) || fabric_a->warmed_not_before(now))
        << "it must not sleep for long before it has looked";
    ASSERT_TRUE(send(*b, Traffic::calls, 1, 8));
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!fabric_a->has_warmed() && std::chrono::steady_clock::now() < until) set_all();
    EXPECT_FALSE(a->is_cold()) << "what is sent is seen nevertheless";
    EXPECT_TRUE(take(*a, Traffic::calls, 1));
}

// A hostile peer takes the announcement and sets its bit, again and again, and sends nothing.
TEST_F(Direct, ALinkIsWarmedInVainOnceOnly) {
    ASSERT_TRUE(a->connect(b->offer()) && b->connect(a->offer()));
    const MappedBoard board = board_of(a->offer());
    const Offer offer = Offer::of(a->offer());
    OfPeer region(a->offer());
    ASSERT_TRUE(board);
    const auto say = [&] {
        std::atomic_ref(region->wanted).store(Wanted::nothing);
        EXPECT_FALSE(PlaceOnBoard(*board, offer.place).set());
    };
    Link* const link[] = {a.get()};
    fabric_a->cool(link);
    say();
    ASSERT_TRUE(fabric_a->has_warmed()) << "a slow sender may mean a frame that has been taken";
    EXPECT_EQ(&fabric_a->take_warmed(), a.get());
    fabric_a->cool(link);
    // The board is looked at less often, too.
    const auto is_seen = [&](bool warms) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (std::atomic_ref(board->summary).load() != 0 && std::chrono::steady_clock::now() < until)
            EXPECT_EQ(fabric_a->has_warmed(), warms && std::atomic_ref(board->summary).load() == 0);
        return fabric_a->has_warmed();
    };
    for (int time = 0; time < 3; ++time) {
        say();
        EXPECT_FALSE(is_seen(false));
        EXPECT_TRUE(a->announces_cold()) << "it is to say again what it sends";
    }
    EXPECT_TRUE(a->is_cold());
    // It is believed with a frame, and from then on without.
    for (std::uint64_t frame = 0; frame < 2; ++frame) {
        ASSERT_TRUE(send(*b, Traffic::calls, frame, 8));
        ASSERT_TRUE(is_seen(true));
        EXPECT_EQ(&fabric_a->take_warmed(), a.get());
        EXPECT_TRUE(take(*a, Traffic::calls, frame));
        fabric_a->cool(link);
    }
    say();
    EXPECT_TRUE(is_seen(true));
}

TEST_F(Direct, ALinkThatIsQuietKeepsFewPages) {
    ASSERT_TRUE(a->connect(b->offer()) && b->connect(a->offer()));
    const std::size_t at_first = test::memory_of_mailboxes(getpid());
    EXPECT_GE(at_first, std::size_t{4 * 2 * 32} << 10U) << "the first frames wait for no page";
    EXPECT_LE(at_first, std::size_t{4 * 2 * 40} << 10U);
    for (const Traffic traffic : {Traffic::calls, Traffic::prompt}) {
        std::uint64_t sent = 0, taken = 0;
        while (send(*a, traffic, sent, 5000)) ++sent;
        while (take(*b, traffic, taken)) ++taken;
        EXPECT_EQ(taken, sent);
    }
    EXPECT_GT(test::memory_of_mailboxes(getpid()), std::size_t{2 * 2 * 900} << 10U)
        << "each page is mapped by both ends";
    for (int look = 0; look < 3; ++look) {
        (void)a->tend_memory();
        (void)b->tend_memory();
    }
    // Each region has three pages with a ring's ends and the words before it, and one more for the next line of each ring.
    constexpr std::size_t kFew = std::size_t{4 * 5 * 4} << 10U;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (test::memory_of_mailboxes(getpid()) > kFew && std::chrono::steady_clock::now() < limit)
        std::this_thread::yield();  // threads of their own do that
    EXPECT_LE(test::memory_of_mailboxes(getpid()), kFew);
}

// The kernel may wait for a peer when it frees pages of a file that the peer has open: nobody else waits then.
class DirectPages : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(a->connect(b->offer()) && b->connect(a->offer()));
        const std::shared_future<void> held_up = let.get_future().share();
        for (unsigned i = 0; i < Reclaimer::kThreadsMax; ++i)
            ASSERT_TRUE(ours->reclaimer().run([held_up] { held_up.wait(); }));
    }

    std::unique_ptr<DirectLanes> ours = std::move(*DirectLanes::open()), theirs = std::move(*DirectLanes::open());
    std::unique_ptr<Link> a = std::move(*ours->open_link()), b = std::move(*theirs->open_link());
    std::promise<void> let;  // all that frees pages of this end's links go on
};

// Other links' peers hold up all threads that would free them.
TEST_F(DirectPages, StayWhereFramesNeedThemBeforeAnyIsFreed) {
    std::uint64_t sent = 0, taken = 0;
    constexpr std::size_t kLarge = 5000;
    for (; sent < 150; ++sent) ASSERT_TRUE(send(*a, Traffic::calls, sent, kLarge));
    for (; taken < sent; ++taken) ASSERT_TRUE(take(*b, Traffic::calls, taken));
    EXPECT_FALSE(a->tend_memory()) << "it was used since the last time";
    (void)b->tend_memory();
    (void)b->tend_memory();
    ASSERT_TRUE(a->tend_memory());
    EXPECT_FALSE(a->tend_memory()) << "it is to be done";
    EXPECT_TRUE(a->has_room(Traffic::calls, wire::kHeaderBytes + kLarge));
    for (; sent < 200; ++sent) ASSERT_TRUE(send(*a, Traffic::calls, sent, kLarge));
    let.set_value();
    for (; sent < 210; ++sent) ASSERT_TRUE(send(*a, Traffic::calls, sent, kLarge));
    for (; taken < sent; ++taken) ASSERT_TRUE(take(*b, Traffic::calls, taken));
    EXPECT_EQ(a->broken(), nullptr);
    (void)b->tend_memory();
    EXPECT_FALSE(a->tend_memory()) << "it was used since the last time";
    EXPECT_TRUE(a->tend_memory()) << "they have not been given back";
}

TEST_F(DirectPages, GoWithTheLinkBeforeAnyIsFreed) {
    const std::size_t mailboxes = test::mailboxes_of(getpid());
    ASSERT_TRUE(a->tend_memory());
    a.reset();
    EXPECT_EQ(test::mailboxes_of(getpid()), mailboxes - 2) << "its own, and the peer's";
    ours.reset();
    b.reset();
    let.set_value();
}

// Pages that are being freed until the test says that they are, or that nobody has begun with.
class LendingLink final : public LoopbackLink {
public:
    using LoopbackLink::LoopbackLink;
    Pages free_pages() override { return Pages::being_freed; }
    [[nodiscard]] bool pages_are_free() const override { return are_free; }
    bool are_free = false;
};
class LendingFabric final : public LoopbackFabric {
public:
    LendingFabric() : LoopbackFabric(std::make_shared<Exchange>(), value_or_throw(Bell::open())) {}
    [[nodiscard]] std::unique_ptr<LendingLink> open() {
        return std::make_unique<LendingLink>(exchange_, bell_and_board_, own_board_, links_);
    }
};

TEST(LentPages, AreNotWrittenWhileTheyAreFreed) {
    LendingFabric fabric;
    const auto a = fabric.open(), b = fabric.open();
    ASSERT_TRUE(a->connect(b->offer()) && b->connect(a->offer()));
    std::uint64_t sent = 0, taken = 0;
    constexpr std::size_t kLarge = 5000;
    for (; sent < 150; ++sent) ASSERT_TRUE(send(*a, Traffic::calls, sent, kLarge));
    for (; taken < sent; ++taken) ASSERT_TRUE(take(*b, Traffic::calls, taken));
    (void)a->tend_memory();
    (void)b->tend_memory();
    (void)b->tend_memory();
    ASSERT_TRUE(a->tend_memory());
    EXPECT_FALSE(a->tend_memory()) << "it is being done";
    // What fits the page that stays is sent, and nothing else, whether it is asked before or not.
    EXPECT_FALSE(a->has_room(Traffic::calls, wire::kHeaderBytes + kLarge));
    EXPECT_FALSE(send(*a, Traffic::calls, sent, kLarge));
    unsigned small = 0;
    for (; a->has_room(Traffic::calls, wire::kHeaderBytes + 8) && small < 1000; ++small, ++sent)
        ASSERT_TRUE(send(*a, Traffic::calls, sent, 8));
    EXPECT_FALSE(send(*a, Traffic::calls, sent, 8));
    EXPECT_GT(small, 0U);
    EXPECT_LE(small, 4096 / wire::kLineBytes);
    for (; taken < sent; ++taken) ASSERT_TRUE(take(*b, Traffic::calls, taken));
    a->are_free = true;
    for (unsigned i = 0; i < 300; ++i, ++sent, ++taken) {
        ASSERT_TRUE(send(*a, Traffic::calls, sent, i % 2 == 0 ? kLarge : 8));
        ASSERT_TRUE(take(*b, Traffic::calls, taken));
    }
    EXPECT_EQ(a->broken(), nullptr);
}

// A peer can write all of it.
TEST_F(Direct, ABoardThatAPeerHasOverwrittenIsStillTheNodesBoard) {
    const Offer offer = Offer::of(a->offer());
    const Descriptor file = std::move(*offer.board.open(offer.pid, S_IFREG));
    const MappedBoard board = map_memory<BoardMemory>(MAP_SHARED, file.number());
    std::memset(board.get(), 0xFF, sizeof *board);
    EXPECT_TRUE(b->connect(a->offer()) && a->connect(b->offer()));
    ASSERT_TRUE(send(*b, Traffic::calls, 0, 8));
    EXPECT_TRUE(take(*a, Traffic::calls, 0));
}

TEST_F(Direct, PublishTwiceIsOneBell) {
    ASSERT_TRUE(a->connect(b->offer()) && b->connect(a->offer()));
    ASSERT_TRUE(fabric_a->announce_sleep());
    for (std::uint64_t number = 0; number < 2; ++number) ASSERT_TRUE(send(*b, Traffic::calls, number, 8));
    EXPECT_EQ(1, bells_in(fabric_a->descriptors().front()));
    fabric_a->end_sleep();
    ASSERT_TRUE(send(*b, Traffic::calls, 2, 8));
    EXPECT_EQ(-1, bells_in(fabric_a->descriptors().front())) << "it does not sleep";
    for (std::uint64_t number = 0; number < 3; ++number) EXPECT_TRUE(take(*a, Traffic::calls, number));
}

TEST_F(Direct, APeerThatAlwaysClaimsToSleepCostsNoMemory) {
    ASSERT_TRUE(a->connect(b->offer()) && b->connect(a->offer()));
    OfPeer peer(a->offer());
    const auto memory_kb = [] {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        return usage.ru_maxrss;
    };
    const long before = memory_kb();
    for (std::uint64_t number = 0; number < 800'000; ++number) {
        std::atomic_ref(peer->wanted).store(Wanted::bell);
        ASSERT_TRUE(send(*b, Traffic::calls, number, 8));  // blocks nowhere, although nobody hears the bell
        ASSERT_TRUE(take(*a, Traffic::calls, number));
    }
    EXPECT_LE(bells_in(fabric_a->descriptors().front()), 4096) << "one page of bells";
    EXPECT_LT(memory_kb() - before, 32 * 1024);  // a sanitizer keeps 10 MiB of its own
}

// SIGPIPE would end this process.
TEST_F(Direct, ABellOfAPeerThatIsGoneIsSilent) {
    ASSERT_TRUE(b->connect(a->offer()));
    OfPeer peer(a->offer());
    a.reset();
    fabric_a.reset();
    for (std::uint64_t number = 0; number < 10'000; ++number) {
        std::atomic_ref(peer->wanted).store(Wanted::bell);
        if (!send(*b, Traffic::calls, number, 8)) break;
    }
    EXPECT_EQ(nullptr, b->broken());
}

TEST(LocalFabric, WhatIsSwitchedOffIsUnsupported) {
    const auto streams = std::move(*open_local_fabric({.direct = false}));
    EXPECT_EQ(ErrorCode::unsupported, streams->open_link().error().code());
    const auto direct = std::move(*open_local_fabric({.stream = false}));
    const auto [one, other] = socket_pair();
    EXPECT_EQ(ErrorCode::unsupported, direct->open_stream(one, kTestKeys).error().code());
    char byte = 0;
    EXPECT_EQ(0, read(other, &byte, 1)) << "the socket is closed";
    close(other);
}

}  // namespace
}  // namespace rove::fabric
