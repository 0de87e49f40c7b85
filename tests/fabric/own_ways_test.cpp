// The promises of single fabrics beyond the common list.
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fabric/loopback/chaos.hpp"
#include "fabric/ucx/ucx_fabric.hpp"
#include "fabrics.hpp"

namespace rove::fabric {
namespace {

Joined join(Fabric& a, Fabric& b) {
    Joined link{std::move(*a.open_link()), std::move(*b.open_link())};
    EXPECT_TRUE(link.a->connect(link.b->offer()));
    EXPECT_TRUE(link.b->connect(link.a->offer()));
    return link;
}

struct ChaosPair {
    explicit ChaosPair(const ChaosOptions& options) {
        auto exchange = std::make_shared<Exchange>();
        a = std::move(*open_chaos_fabric(exchange, options));
        b = std::move(*open_chaos_fabric(exchange, options));
        link = join(*a, *b);
    }
    std::unique_ptr<Fabric> a, b;
    Joined link;
};

// In which turn each frame arrived.
std::vector<unsigned> arrivals(std::uint64_t seed) {
    ChaosPair pair({.seed = seed, .piece_bytes_max = 100, .pieces_per_turn_max = 8});
    for (std::uint64_t number = 0; number < 50; ++number) EXPECT_TRUE(send(*pair.link.a, Traffic::calls, number, 999));
    std::vector<unsigned> turns;
    for (unsigned turn = 0; turns.size() < 50 && turn < 100'000; ++turn) {
        pair.a->progress();
        while (take(*pair.link.b, Traffic::calls, turns.size())) turns.push_back(turn);
    }
    return turns;
}

TEST(Chaos, IsTheSameForTheSameSeed) {
    const std::uint64_t seed = test::seed();
    EXPECT_EQ(50U, arrivals(seed).size());
    EXPECT_EQ(arrivals(seed), arrivals(seed));
    EXPECT_NE(arrivals(seed), arrivals(seed + 1));
}

TEST(Chaos, CutsTheLinkAfterSoManyFrames) {
    ChaosPair pair({.seed = test::seed(), .frames_max = 10});
    for (std::uint64_t number = 0; number < 11; ++number) EXPECT_TRUE(send(*pair.link.a, Traffic::calls, number, 100));
    ASSERT_NE(nullptr, pair.link.a->broken());
    EXPECT_EQ(ErrorCode::disconnected, pair.link.a->broken()->code());
    for (unsigned turn = 0; turn < 1000; ++turn) pair.a->progress();
    wire::Frame frame;
    EXPECT_FALSE(pair.link.b->next(Traffic::calls, frame));
    EXPECT_EQ(nullptr, pair.link.a->reserve(Traffic::calls, wire::kHeaderBytes));
}

// Of mailboxes, and of memory that UCX shares with others, by their names: an allocator has mappings of its own, a sanitizer's many.
std::size_t count_mappings() {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);)
        for (const char* const name : {"ucx_shm", "rove-mailbox"})
            count += line.find(name) != std::string::npos ? 1 : 0;
    return count;
}
std::size_t count_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// UCX gives an endpoint back with its worker alone.
TEST(Ucx, PeersThatComeAndGoLeaveNothing) {
    for (const bool shm : {true, false}) {
        const auto a = std::move(*open_ucx_fabric({.shm = shm, .tcp = !shm}));
        std::size_t mappings = 0, descriptors = 0;
        for (int round = 0; round < 100; ++round) {
            if (round == 20) {
                mappings = count_mappings();
                descriptors = count_descriptors();
            }
            const auto b = std::move(*open_ucx_fabric({.shm = shm, .tcp = !shm}));
            const Joined link = join(*a, *b);
            ASSERT_TRUE(send(*link.a, Traffic::calls, 1, 100));
            ASSERT_TRUE(send(*link.b, Traffic::calls, 1, 100));
            bool at_a = false, at_b = false;
            for (int turn = 0; turn < 1'000'000 && !(at_a && at_b); ++turn) {
                a->progress();
                b->progress();
                at_a = at_a || take(*link.a, Traffic::calls, 1);
                at_b = at_b || take(*link.b, Traffic::calls, 1);
            }
            ASSERT_TRUE(at_a && at_b) << round;
        }
        EXPECT_LE(count_mappings(), mappings + 40) << shm;
        EXPECT_LE(count_descriptors(), descriptors + 20) << shm;
    }
}

// What an offer says is the peer's word: it must lead to the peer's mailbox and nowhere else.
TEST(UcxSharedMemory, AnOfferThatPointsElsewhereIsRefused) {
    auto a = std::move(*open_ucx_fabric({.shm = true, .tcp = false}));
    auto b = std::move(*open_ucx_fabric({.shm = true, .tcp = false}));
    const auto mine = std::move(*a->open_link());
    const auto other = std::move(*b->open_link());
    Reader in(mine->offer());
    in.take(1 + 36 + 8);  // version, boot id, token
    in.text();            // worker
    const std::size_t pid = mine->offer().size() - in.rest().size(), descriptor = pid + 4, inode = descriptor + 4 + 8;
    // No process has a number of 2^22 or more. (The next number may be that of a thread of this process.)
    for (const std::size_t at : {pid + 2, descriptor, inode, std::size_t{1 + 36}}) {
        ByteBuffer offer = mine->offer();
        offer[at] ^= at == pid + 2 ? std::byte{0x40} : std::byte{1};
        const Status status = other->connect(offer);
        ASSERT_FALSE(status) << at;
        EXPECT_EQ(ErrorCode::unsupported, status.error().code()) << at;
        EXPECT_EQ(Lane::none, other->lane());
    }
    EXPECT_FALSE(mine->connect(mine->offer())) << "its own mailbox";
    EXPECT_TRUE(other->connect(mine->offer()));
}

// The error names the option that differs, and both ends may use another lane.
TEST(UcxSharedMemory, AnOfferOfADirectLaneIsOfAnotherKind) {
    const auto ucx = std::move(*open_ucx_fabric({.shm = true, .tcp = true}));
    const auto local = std::move(*open_local_fabric({}));
    const auto over_ucx = std::move(*ucx->open_link()), direct = std::move(*local->open_link());
    for (const Status& status : {over_ucx->connect(direct->offer()), direct->connect(over_ucx->offer())}) {
        ASSERT_FALSE(status);
        EXPECT_EQ(ErrorCode::unsupported, status.error().code()) << status.error().message();
        EXPECT_NE(std::string::npos, status.error().message().find("--fabric")) << status.error().message();
    }
}

// That is no reason to take another lane without a word, or to look for a wrong option.
TEST(UcxSharedMemory, AMailboxThatCannotBeOpenedForLackOfDescriptorsSaysSo) {
    for (const bool tcp : {false, true}) {
        const auto a = std::move(*open_ucx_fabric({.shm = true, .tcp = tcp}));
        const auto b = std::move(*open_ucx_fabric({.shm = true, .tcp = tcp}));
        const auto mine = std::move(*a->open_link());
        const auto other = std::move(*b->open_link());
        rlimit limit{};
        ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
        const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};  // those that are open stay
        ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
        const Status status = other->connect(mine->offer());
        ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
        ASSERT_FALSE(status);
        EXPECT_EQ(ErrorCode::overloaded, status.error().code()) << status.error().message();
        EXPECT_NE(std::string::npos, status.error().message().find("ulimit -n")) << status.error().message();
    }
}

// A peer may be killed between its offer and its meeting.
TEST(UcxSharedMemory, AnOfferOfAPeerThatHasEndedIsRefused) {
    auto a = std::move(*open_ucx_fabric({.shm = true, .tcp = false}));
    const auto b = std::move(*open_ucx_fabric({.shm = true, .tcp = false}));
    for (int round = 0; round < 20; ++round) {
        auto mine = std::move(*a->open_link());
        const auto other = std::move(*b->open_link());
        const ByteBuffer offer = mine->offer();
        mine.reset();
        const Status status = other->connect(offer);
        ASSERT_FALSE(status);
        EXPECT_EQ(ErrorCode::unsupported, status.error().code());
    }
}

}  // namespace
}  // namespace rove::fabric
