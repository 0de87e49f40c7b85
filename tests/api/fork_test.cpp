// fork(): the child's uses of inherited objects fail at once, it ends in peace, and the parent goes on unharmed.
#include "base/fork.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "../childs_leaks.hpp"
#include "api/access.hpp"
#include "base/made_once.hpp"
#include "engine/here.hpp"
#include "node/core.hpp"
#include "nodes.hpp"

namespace rove::test {

class Forks : public OnFabrics {
protected:
    // Runs `work` in a child; gives its exit status, or 128 + the signal that ended it. 10 s are too long.
    template <typename Work>
    int in_child(const Work& work) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(10);
            int status = 99;
            try {
                status = work();
            } catch (const std::exception& error) {
                std::fprintf(stderr, "in the child: %s\n", error.what());
            }
            _exit(status);
        }
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    template <typename Work>
    static bool is_refused(const Work& work) {
        try {
            work();
        } catch (const Error& error) {
            return error.code() == ErrorCode::invalid && error.message().find("fork") != std::string::npos;
        }
        return false;
    }
};
// The child of a fork is another process.
ROVE_ON_FABRICS_OF_PROCESSES(Forks);

TEST_P(Forks, TheChildsCallsFailAndTheParentGoesOn) {
    const auto small = peer().allocate<int>(10).get(), large = peer().allocate<int>(100'000).get();
    const std::vector<int> host(100'000, 4);
    Call<int> in_flight = peer().async([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        return 17;
    });
    const int status = in_child([&] {
        std::vector<int> back(100'000);
        int wrong = 0;
        const auto refused = [&wrong](const auto& work) { wrong += is_refused(work) ? 0 : 1; };
        refused([&] { (void)peer().sync([] { return 1; }); });
        refused([&] { peer().post([] {}); });
        refused([&] { (void)peer().allocate<int>(3).get(); });
        refused([&] { peer().put(host, large).get(); });
        refused([&] { peer().get(large, back).get(); });
        refused([&] { copy(small, large).get(); });
        refused([&] { (void)in_flight.get(); });
        refused([&] { (void)node_->connect(server_->address()); });
        refused([&] { (void)node_->poll(); });
        TearDown();  // ends nodes and peers as the parent would
        return wrong;
    });
    EXPECT_EQ(status, 0);
    EXPECT_EQ(in_flight.get(), 17);
    peer().put(host, large).get();
    std::vector<int> back(100'000);
    peer().get(large, back).get();
    EXPECT_EQ(back, host);
    EXPECT_EQ(peer().sync([] { return 2; }), 2);
    EXPECT_EQ(node_->connect(server_->address()).sync([] { return 3; }), 3);  // it still listens
}

TEST_P(Forks, WhileOthersCallTheParentLosesNothing) {
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    std::thread calls([&] {
        for (int i = 0; !stop; ++i)
            if (peer().sync([](int x) { return x + 1; }, i) != i + 1) ++wrong;
    });
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(in_child([&] {
                      const bool refused = is_refused([&] { (void)peer().sync([] { return 1; }); });
                      node_.reset();
                      server_.reset();
                      return refused ? 0 : 1;
                  }),
                  0);
    }
    stop = true;
    calls.join();
    EXPECT_EQ(wrong, 0);
}

TEST_P(Forks, TheChildCanMakeANodeOfItsOwn) {
    EXPECT_EQ(in_child([&] {
                  Node own(options());
                  return own.connect(server_->address()).sync([](int x) { return 2 * x; }, 21) == 42 ? 0 : 1;
              }),
              0);
    EXPECT_EQ(peer().sync([] { return 2; }), 2);
}

// exit() runs destructors of globals, and those of what threads of the parent were at.
TEST_P(Forks, TheChildMayEndAsProgramsDo) {
    EXPECT_EQ(in_child([&]() -> int {
                  if (!is_refused([&] { (void)peer().sync([] { return 1; }); })) return 1;
                  std::exit(7);  // NOLINT(concurrency-mt-unsafe)
              }),
              7);
    EXPECT_EQ(peer().sync([] { return 2; }), 2);
}

// What another thread was making at the fork is nobody's to finish in the child.
TEST(MadeOnce, IsMadeAnewInAChildOfAForkMeanwhile) {
    static constinit MadeOnce<const int> value;
    std::atomic<bool> begun{false}, go_on{false};
    std::thread maker([&] {
        (void)value.get([&] {
            begun = true;
            begun.notify_one();
            go_on.wait(false);
            return new int(1);
        });
    });
    begun.wait(false);
    const pid_t child = fork();
    if (child == 0) {
        alarm(10);
        _exit(value.get([] { return new int(42); }));
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
    std::thread waits([&] { EXPECT_EQ(value.get([] { return new int(3); }), 1); });
    go_on = true;
    go_on.notify_one();
    maker.join();
    waits.join();
    EXPECT_EQ(value.get([] { return new int(4); }), 1);
}

TEST(MadeOnce, IsTriedAgainWhereMakingFailed) {
    static constinit MadeOnce<const int> value;
    EXPECT_THROW(value.get([]() -> const int* { throw std::runtime_error("not now"); }), std::runtime_error);
    EXPECT_EQ(value.get([] { return new int(5); }), 5);
}

// How many peers the node knows that the function runs on.
std::size_t peers_here(Here& here) {
    return here.raw()->engine->peers().count();
}
// A process meets the server and has a child that lives on. The child keeps none of the sockets by which its end is seen.
TEST_P(Forks, AChildThatLivesOnHidesNobodysEnd) {
    enum class End { drops_its_node, is_killed };
    for (const End end : {End::drops_its_node, End::is_killed}) {
        SCOPED_TRACE(end == End::is_killed ? "killed" : "drops its node");
        ASSERT_EQ(peer().sync(fn<peers_here>), 1U);
        std::array<int, 2> lives{}, ready{};
        ASSERT_EQ(pipe2(lives.data(), O_CLOEXEC), 0);  // the grandchild lives until its writing end is closed
        ASSERT_EQ(pipe2(ready.data(), O_CLOEXEC), 0);
        const pid_t parent = fork_or_throw();
        if (parent == 0) {
            alarm(60);
            close(lives[1]);
            auto own = std::make_unique<Node>(options());
            (void)own->connect(server_->address()).sync([] { return 1; });
            if (fork() == 0) {
                alarm(60);
                char byte = 0;
                (void)!read(lives[0], &byte, 1);
                _exit(0);
            }
            (void)!write(ready[1], "x", 1);
            if (end == End::drops_its_node) own.reset();
            for (;;) pause();
        }
        close(lives[0]);
        char byte = 0;
        EXPECT_EQ(read(ready[0], &byte, 1), 1);
        if (end == End::is_killed) kill(parent, SIGKILL);
        std::size_t left = 0;
        for (int looks = 0; looks < 1000 && (left = peer().sync(fn<peers_here>)) != 1; ++looks)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_EQ(left, 1U) << "its end was not seen";
        kill(parent, SIGKILL);
        waitpid(parent, nullptr, 0);
        for (const int each : {lives[1], ready[0], ready[1]}) close(each);
    }
}

// The sockets by which nodes meet, and memory files: a program that this one starts inherits none.
TEST_P(Forks, ExecInheritsNoSocketAndNoMemory) {
    const auto buffer = peer().allocate<int>(100'000).get();
    const auto unmapped = peer().allocate<int>(100'000);
    (void)peer().sync([] { return 1; });
    const std::string address = server_->address();
    const auto port = static_cast<in_port_t>(std::stoi(address.substr(address.rfind(':') + 1)));
    const auto is_control = [port](int descriptor) {
        sockaddr_in mine{}, other{};
        socklen_t mine_size = sizeof mine, other_size = sizeof other;
        const bool has_mine = getsockname(descriptor, reinterpret_cast<sockaddr*>(&mine), &mine_size) == 0;
        const bool has_other = getpeername(descriptor, reinterpret_cast<sockaddr*>(&other), &other_size) == 0;
        return (has_mine && ntohs(mine.sin_port) == port) || (has_other && ntohs(other.sin_port) == port);
    };
    int seen = 0;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        const int descriptor = std::stoi(each.path().filename().string());
        std::error_code gone;
        const std::string target = std::filesystem::read_symlink(each.path(), gone).string();
        if (!target.starts_with("/memfd:rove") && !is_control(descriptor)) continue;
        ++seen;
        EXPECT_EQ(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC) << descriptor << " is " << target;
    }
    EXPECT_GE(seen, 4);  // the one that listens, both ends of the meeting, and a buffer
}

// What a child of this process finds there where a thread of ours is in the middle of something for 50 ms: 1, that it is over.
template <typename Begin, typename End, typename IsOver>
int found_by_a_child(const Begin& begin, const End& end, const IsOver& is_over) {
    std::atomic<bool> begun{false};
    std::thread thread([&] {
        begin();
        begun = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        end();
    });
    while (!begun) std::this_thread::yield();
    const pid_t child = fork();
    if (child == 0) _exit(is_over() ? 1 : 2);
    thread.join();
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ForksAndLocks, OneOfTheProcessIsFree) {
    static Mutex mutex;  // never destroyed before the process ends
    hold_across_forks(mutex);
    EXPECT_EQ(found_by_a_child([]() NO_THREAD_SAFETY_ANALYSIS { mutex.lock(); },
                               []() NO_THREAD_SAFETY_ANALYSIS { mutex.unlock(); },
                               []() NO_THREAD_SAFETY_ANALYSIS { return mutex.try_lock(); }),
              1);
}

TEST(ForksAndLocks, AForkWaitsWhileALibraryMayHoldItsOwnLock) {
    std::optional<NoForkMeanwhile> whole;
    std::atomic<bool> is_within{false};
    const auto begin = [&] {
        whole.emplace();
        is_within = true;
    };
    const auto end = [&] {
        is_within = false;
        whole.reset();
    };
    EXPECT_EQ(found_by_a_child(begin, end, [&] { return !is_within; }), 1);
}

}  // namespace rove::test
