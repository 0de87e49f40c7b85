// Functions that call: back to the caller, sideways, themselves, through one thread each.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "nodes.hpp"

namespace rove::test {

int back_and_forth(Here& here, int depth) {
    return depth == 0 ? 0 : 1 + here.caller().sync(fn<back_and_forth>, depth - 1);
}
int with_large_frames(Here& here, int depth) {
    volatile char frame[512 * 1024];  // each byte of it is the stack's
    for (std::size_t i = 0; i < sizeof frame; i += 1024) frame[i] = static_cast<char>(depth);
    const int deeper = depth == 0 ? 0 : 1 + here.caller().sync(fn<with_large_frames>, depth - 1);
    return deeper + (frame[1024] - static_cast<char>(depth));
}
int on_itself(Here& here, int depth) {
    return depth == 0 ? 0 : 1 + here.peer(here.node()).sync(fn<on_itself>, depth - 1);
}
std::string round_trip(Here& here, std::uint32_t nodes, std::uint32_t at) {
    if (at == nodes) return ".";
    return std::to_string(here.node()) + here.peer(at % here.node_count()).sync(fn<round_trip>, nodes, at + 1);
}
int large_both_ways(Here& here, int depth, const std::vector<char>& data) {
    return depth == 0 ? static_cast<int>(data.size()) : here.caller().sync(fn<large_both_ways>, depth - 1, data);
}
int in_flight(Here& here, int count) {
    std::vector<Call<int>> calls;
    for (int i = 0; i < count; ++i) calls.push_back(here.caller().async([](int x) { return x; }, i));
    int sum = 0;
    for (Call<int>& call : calls) sum += call.get();
    return sum;
}

class Reverse : public OnFabrics {
protected:
    void SetUp() override {
        NodeOptions one = options(true);
        one.threads = 1;
        server_ = std::make_unique<Node>(started(one));
        one.listen.clear();
        node_ = std::make_unique<Node>(started(one));
        peer_ = std::make_unique<Peer>(node_->connect(server_->address()));
    }
};
ROVE_ON_FABRICS(Reverse);

TEST_P(Reverse, AChainOverTwoNodesWithOneThreadEach) {
    for (const int depth : {0, 1, 2, 5, 30}) EXPECT_EQ(peer().sync(fn<back_and_forth>, depth), depth);
}

TEST_P(Reverse, ACircleWithoutEndIsAnError) {
    const Error error = error_of([&] { (void)peer().sync(fn<back_and_forth>, 100'000); });
    EXPECT_EQ(error.code(), ErrorCode::overloaded) << error.message();
    EXPECT_EQ(peer().sync(fn<back_and_forth>, 3), 3);
}

// Of functions that take 512 KiB each, fewer fit on a stack than may wait for one another: 128 would need 64 MiB.
TEST_P(Reverse, ACircleOfFunctionsWithLargeFramesEndsBeforeTheStackDoes) {
    const Error error = error_of([&] { (void)peer().sync(fn<with_large_frames>, 100'000); });
    EXPECT_EQ(error.code(), ErrorCode::overloaded) << error.message();
    EXPECT_NE(error.message().find("stack"), std::string::npos) << error.message();
    EXPECT_EQ(peer().sync(fn<with_large_frames>, 4), 4);
}

TEST_P(Reverse, ANodeCallsItself) {
    EXPECT_EQ(peer().sync(fn<on_itself>, 20), 20);
}

TEST_P(Reverse, LargeArgumentsBothWays) {
    const std::vector<char> data(1'000'000, 'x');
    EXPECT_EQ(peer().sync(fn<large_both_ways>, 4, data), 1'000'000);
}

TEST_P(Reverse, SeveralAtOnce) {
    EXPECT_EQ(peer().sync(fn<in_flight>, 100), 4950);
}

TEST_P(Reverse, SeveralThreadsBothWays) {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 50; ++i) wrong += peer().sync(fn<back_and_forth>, 4) == 4 ? 0 : 1;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST_P(Reverse, AroundSeveralNodes) {
    std::vector<std::unique_ptr<Node>> others;
    for (int i = 0; i < 2; ++i) {
        NodeOptions joining = options(true);
        joining.join = server_->address();
        joining.threads = 1;
        others.push_back(std::make_unique<Node>(started(joining)));
    }
    EXPECT_EQ(peer().sync(fn<round_trip>, 9U, 1U), "01201201.");
}

// A thread that waits for a call leaves functions that are known to run long to the node's own threads, and these take them
// although somebody waits. (They once gave the lead back to the one who waits, who gave it to them, and so on.)
int naps(Here& here, int count) {
    int sum = 0;
    for (int i = 0; i < count; ++i)
        sum += here.caller().sync(
            [](int ms) {
                std::this_thread::sleep_for(std::chrono::milliseconds(ms));
                return ms;
            },
            5);
    return sum;
}
TEST(Policies, LongFunctionsRunWhileAThreadWaits) {
    (void)scratch();
    NodeOptions options;
    options.listen = "127.0.0.1:0";
    options.log = "error";
    Node server(options);
    options.listen.clear();
    Node node(options);
    EXPECT_EQ(node.connect(server.address()).sync(fn<naps>, 6), 30);
}

// Threads that lose the lead while they sleep are woken one by one; a wake-up that one of them took in for another was lost once,
// and the node did not end.
TEST(Policies, NodesComeAndGoWhileTheLeadGoesFromHandToHand) {
    (void)scratch();
    NodeOptions options;
    options.listen = "127.0.0.1:0";
    options.log = "error";
    options.waiting = Waiting::frugal;  // asleep as often as can be
    Node server(options);
    options.listen.clear();
    std::atomic<int> right{0};
    for (int i = 0; i < 40; ++i) {
        Node node(options);
        const Peer peer = node.connect(server.address());
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t)
            threads.emplace_back([&peer, &right] {
                for (int call = 0; call < 20; ++call) {
                    Call<int> same = peer.async([](int x) { return x; }, call);
                    right += same.wait_for(std::chrono::seconds(20)) && same.get() == call ? 1 : 0;
                }
            });
        for (std::thread& thread : threads) thread.join();
    }
    EXPECT_EQ(right, 40 * 3 * 20);
}

// A policy of one's own: a queue and a thread.
struct Pool {
    static Pool& instance() {
        static Pool pool;
        return pool;
    }
    static void run(Work work) {
        Pool& pool = instance();
        const std::lock_guard lock(pool.mutex);
        pool.queue.push_back(std::move(work));
        pool.changed.notify_one();
    }
    Pool()
        : thread([this] {
              std::unique_lock lock(mutex);
              for (;;) {
                  changed.wait(lock, [this] { return ended || !queue.empty(); });
                  if (ended) return;
                  Work work = std::move(queue.front());
                  queue.pop_front();
                  lock.unlock();
                  work();
                  lock.lock();
              }
          }) {}
    ~Pool() {
        {
            const std::lock_guard lock(mutex);
            ended = true;
            changed.notify_one();
        }
        thread.join();
    }
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Work> queue;
    bool ended = false;
    std::thread thread;
};
struct Dropping {
    static void run(Work) {}
};

// Policies that let an exception out of run(), or destroy their Work by one.
struct Throwing {
    static void run(Work) { throw std::out_of_range("the queue is full"); }
};
struct ThrowingByReference {
    static void run(Work&&) { throw std::out_of_range("the queue is full"); }
};
struct ThrowingOfMoved {
    static void run(Work work) {
        const Work mine(std::move(work));
        throw std::out_of_range("the queue is full");
    }
};
struct ThrowingAfterwards {
    static void run(Work work) {
        work();
        throw std::out_of_range("ran already");
    }
};
struct ThrowingOfQueued {
    static void run(Work work) {
        Pool::run(std::move(work));
        throw std::out_of_range("is in the pool");
    }
};
struct Catching {
    static void run(Work work) {
        try {
            const Work mine(std::move(work));
            throw std::out_of_range("of nobody's concern");
        } catch (const std::out_of_range&) {
        }
    }
};

TEST_P(Reverse, PoliciesOfOnesOwn) {
    const auto where = [] { return std::hash<std::thread::id>()(std::this_thread::get_id()); };
    const std::size_t pool = std::hash<std::thread::id>()(Pool::instance().thread.get_id());
    EXPECT_EQ(peer().sync(run_by<Pool>(where)), pool);
    EXPECT_NE(peer().sync(where), pool);
    EXPECT_EQ(peer().sync(run_by<Pool>([](const std::string& text) { return text + "!"; }), std::string(1000, 'a')),
              std::string(1000, 'a') + "!");
    EXPECT_EQ(error_of([&] { (void)peer().sync(run_by<Dropping>(where)); }).code(), ErrorCode::cancelled);
    EXPECT_THROW((void)peer().sync(run_by<Pool>([]() -> int { throw std::out_of_range("x"); })), RemoteError);
}

TEST_P(Reverse, WhatAPolicyThrowsIsTold) {
    const auto one = [] { return 1; };
    const auto refused = [&](auto function) {
        try {
            (void)peer().sync(function);
            ADD_FAILURE() << "nothing is thrown";
        } catch (const RemoteError& error) {
            EXPECT_EQ(error.code(), ErrorCode::failed);
            EXPECT_EQ(error.type(), "std::out_of_range");
            EXPECT_STREQ(error.what(), "the queue is full");
        }
    };
    refused(run_by<Throwing>(one));
    refused(run_by<ThrowingByReference>(one));
    refused(run_by<ThrowingOfMoved>(one));
    EXPECT_EQ(peer().sync(run_by<ThrowingAfterwards>(one)), 1);
    EXPECT_EQ(peer().sync(run_by<ThrowingOfQueued>(one)), 1);
    EXPECT_EQ(error_of([&] { (void)peer().sync(run_by<Catching>(one)); }).code(), ErrorCode::cancelled);
}

// Long functions known as such leave the node to others from the beginning.
TEST(Policies, AWorkerLetsOthersBeServed) {
    (void)scratch();
    NodeOptions options;
    options.listen = "127.0.0.1:0";
    options.log = "error";
    Node server(options);
    options.listen.clear();
    Node node(options);
    const Peer peer = node.connect(server.address());
    const auto busy = [](int ms) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
        while (std::chrono::steady_clock::now() < end) {
        }
        return ms;
    };
    Call<int> slow = peer.async(on_worker(busy), 2000);
    EXPECT_EQ(peer.sync([](int x) { return x; }, 1), 1);
    EXPECT_FALSE(slow.done()) << "it was served when the worker had ended";
    EXPECT_EQ(slow.get(), 2000);
}

}  // namespace rove::test
