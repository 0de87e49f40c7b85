// The doorbells of peers: how many are open, who opens and closes them, and that all nodes of a process share them.
#include "fabric/direct/peers_bells.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

#include <thread>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "direct_links.hpp"

namespace rove::fabric {
namespace {

// One fabric with links to more others than it keeps bells open: each is rung, and no descriptor is left.
TEST_F(Direct, PeersThatSleepAreWokenHoweverManyThereAre) {
    constexpr std::size_t kMany = PeersBells::kOpenMax + 10;
    struct Other {
        std::unique_ptr<Fabric> fabric;
        std::unique_ptr<Link> link, back;
    };
    const std::size_t before = count_descriptors();
    {
        std::vector<Other> others(kMany);
        for (Other& other : others) {
            other.fabric = std::move(*open_local_fabric({.stream = false}));
            other.link = std::move(*other.fabric->open_link());
            other.back = std::move(*fabric_a->open_link());
            ASSERT_TRUE(other.link->connect(other.back->offer()));
            ASSERT_TRUE(other.back->connect(other.link->offer()));
            other.link->settled();
            other.back->settled();
        }
        // Each fabric has its own bell and board. fabric_a's bell is open once, because they are all in this process.
        EXPECT_EQ(count_descriptors(), before + 2 * kMany + PeersBells::kOpenMax);
        for (int round = 1; round <= 2; ++round)
            for (Other& other : others) {
                ASSERT_TRUE(other.fabric->announce_sleep());
                ASSERT_TRUE(send(*other.back, Traffic::calls, static_cast<unsigned>(round), 8));
                EXPECT_EQ(bells_in(other.fabric->descriptors().front()), 1);
                other.fabric->end_sleep();
            }
        EXPECT_EQ(count_descriptors(), before + 2 * kMany + PeersBells::kOpenMax);
        fabric_a->tidy();
        EXPECT_EQ(count_descriptors(), before + 2 * kMany + PeersBells::kOpenMax) << "they were rung just now";
        PeersBells::of_process().close_quiet(Clock::now() + PeersBells::kQuietFor);
        EXPECT_EQ(count_descriptors(), before + 2 * kMany + PeersBells::kStayOpen);
        for (Other& other : others) {
            ASSERT_TRUE(other.fabric->announce_sleep());
            ASSERT_TRUE(send(*other.back, Traffic::calls, 3, 8));
            EXPECT_EQ(bells_in(other.fabric->descriptors().front()), 1);
        }
    }
    EXPECT_EQ(count_descriptors(), before);
}

// Two nodes of this process with a link to a third.
class SharedBell : public Direct {
protected:
    struct Other {
        std::unique_ptr<Fabric> fabric = std::move(*open_local_fabric({.stream = false}));
        std::unique_ptr<Link> link = std::move(*fabric->open_link()), back;
        // Meets `with`, and sends: whether that has rung the bell.
        bool meet(Fabric& with) {
            back = std::move(*with.open_link());
            return link->connect(back->offer()) && back->connect(link->offer());
        }
        bool rings(Fabric& sleeper) {
            EXPECT_TRUE(sleeper.announce_sleep());
            EXPECT_TRUE(send(*link, Traffic::calls, sent++, 8));
            return bells_in(sleeper.descriptors().front()) == 1;
        }
        std::uint64_t sent = 0;
    };
};

TEST_F(SharedBell, IsOpenOnceAndClosedByTheLastLink) {
    Other first, second;
    ASSERT_TRUE(first.meet(*fabric_a));
    const std::size_t before = count_descriptors();
    ASSERT_TRUE(second.meet(*fabric_a));
    second.link->settled();
    second.back->settled();
    EXPECT_EQ(count_descriptors(), before) << "its own bell is open, its mailbox's file is not";
    EXPECT_TRUE(first.rings(*fabric_a));
    EXPECT_TRUE(second.rings(*fabric_a));
    first.link.reset();
    EXPECT_TRUE(second.rings(*fabric_a)) << "it is the second one's, too";
    const std::size_t with_bell = count_descriptors();
    second.link.reset();
    EXPECT_EQ(count_descriptors(), with_bell - 1);
}

TEST_F(SharedBell, IsOpenedAgainByWhoRingsIt) {
    Other first, second;
    ASSERT_TRUE(first.meet(*fabric_a) && second.meet(*fabric_a));
    std::vector<Other> more(PeersBells::kStayOpen);
    for (Other& each : more) ASSERT_TRUE(each.meet(*fabric_b));
    PeersBells::of_process().close_quiet(Clock::now() + PeersBells::kQuietFor);
    EXPECT_TRUE(first.rings(*fabric_a));
    EXPECT_TRUE(second.rings(*fabric_a));
}

// Each by a thread and a fabric of its own, as nodes do, while others come and go.
TEST_F(SharedBell, IsRungByManyThreads) {
    constexpr unsigned kThreads = 4, kRounds = 200;
    std::vector<std::unique_ptr<Other>> others;
    for (unsigned i = 0; i < kThreads; ++i) {
        others.push_back(std::make_unique<Other>());
        ASSERT_TRUE(others[i]->meet(*fabric_a));
    }
    const std::size_t before = count_descriptors();
    {
        std::vector<std::jthread> threads;
        for (const auto& other : others)
            threads.emplace_back([&bells = PeersBells::of_process(), offer = Offer::of(other->back->offer())] {
                for (unsigned round = 0; round < kRounds; ++round) {
                    auto bell = bells.open({offer.pid, offer.bell});
                    ASSERT_TRUE(bell) << bell.error().message();
                    bell->ring();
                    bells.close_quiet(Clock::now() + PeersBells::kQuietFor);
                }
            });
    }
    EXPECT_EQ(bells_in(fabric_a->descriptors().front()), static_cast<int>(kThreads * kRounds));
    PeersBells::of_process().close_quiet(Clock::now() + PeersBells::kQuietFor);
    EXPECT_LE(count_descriptors(), before);
}

// Bells that nobody else holds: the last link closes one while another thread opens it.
TEST_F(SharedBell, IsOpenedWhileItsLastLinkLeaves) {
    constexpr unsigned kThreads = 4, kRounds = 300;
    const std::size_t before = count_descriptors();
    const std::array<Offer, 2> offers{Offer::of(a->offer()), Offer::of(b->offer())};
    {
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < kThreads; ++i)
            threads.emplace_back([&bells = PeersBells::of_process(), &offers] {
                for (unsigned round = 0; round < kRounds; ++round) {
                    const Offer& offer = offers[round % offers.size()];
                    auto bell = bells.open({offer.pid, offer.bell});
                    ASSERT_TRUE(bell) << bell.error().message();
                    bell->ring();
                }
            });
    }
    EXPECT_EQ(bells_in(fabric_a->descriptors().front()) + bells_in(fabric_b->descriptors().front()),
              static_cast<int>(kThreads * kRounds));
    EXPECT_EQ(count_descriptors(), before) << "the last has closed each";
}

// The child has bells of its own: a thread of its parent may have been using these when it was forked.
TEST_F(SharedBell, IsNotTheChildsOfAFork) {
    ASSERT_TRUE(a->connect(b->offer()) && b->connect(a->offer()));
    const PeersBells* const ours = &PeersBells::of_process();
    const pid_t child = fork();
    if (child == 0) _exit(&PeersBells::of_process() == ours ? 1 : 0);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(&PeersBells::of_process(), ours);
}

// While a peer's file is checked, no others are opened for it: what the check compares with is known.
TEST_F(Direct, APeersBellIsOpenedWithTwoDescriptors) {
    const Offer offer = Offer::of(a->offer());
    ASSERT_TRUE(offer.bell.open(offer.pid, S_IFIFO));
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    std::vector<Descriptor> all;  // all numbers up to the last are in use
    for (int i = 0; i < 64; ++i) all.emplace_back(dup(STDERR_FILENO));
    const rlimit two{.rlim_cur = static_cast<rlim_t>(all.back().number()) + 1, .rlim_max = limit.rlim_max};
    all.resize(all.size() - 2);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &two), 0);
    const bool is_opened = offer.bell.open(offer.pid, S_IFIFO).has_value();
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_TRUE(is_opened);
}

TEST_F(Direct, APeerIsWokenAlsoWhereDescriptorsAreShort) {
    ASSERT_TRUE(a->connect(b->offer()) && b->connect(a->offer()));
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
    ASSERT_TRUE(fabric_b->announce_sleep());
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_TRUE(send(*a, Traffic::calls, 1, 8));
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_EQ(bells_in(fabric_b->descriptors().front()), 1) << "its bell is open";
}

}  // namespace
}  // namespace rove::fabric
