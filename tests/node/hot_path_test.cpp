// The short ways: payloads written in place, batches, code in every frame, and threads that do not wait for one another.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <thread>

#include "../api/error_of.hpp"
#include "api/access.hpp"
#include "beside_node.hpp"
#include "bytes.hpp"
#include "engine_view.hpp"
#include "node/core.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using std::chrono::milliseconds;

class HotPath : public BesideANode {
protected:
    [[nodiscard]] Entry entry(std::string_view name) const { return package_->entry(name); }
    [[nodiscard]] long count() const { return as<long>(peer_->call(entry("count")).get()); }
};

ROVE_ON_FABRICS(HotPath);

TEST_P(HotPath, AFrameIsFilledInPlace) {
    for (int round = 0; round < 3; ++round) {  // the first goes the long way: the peer does not know the function yet
        CallFrame frame = peer_->begin(entry("echo"), 5);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frame.payload().data()) % 16, 0U);
        std::ranges::copy(bytes("hello"), frame.payload().begin());
        std::byte reply[8];
        RawCall call = frame.call();
        EXPECT_EQ(call.get_into(reply), 5U);
        EXPECT_EQ(text({reply, reply + 5}), "hello");
        EXPECT_EQ(error_of([&] { frame.post(); }).code(), ErrorCode::invalid);
    }
}

TEST_P(HotPath, AFrameThatIsDroppedIsNotSent) {
    EXPECT_EQ(count(), 1);
    {
        const CallFrame dropped = peer_->begin(entry("count"), 64);
    }
    peer_->begin(entry("count"), 64).post();
    EXPECT_EQ(count(), 3);
}

TEST_P(HotPath, WhoFillsAFrameSendsNothingElseThere) {
    EXPECT_EQ(count(), 1);
    CallFrame frame = peer_->begin(entry("count"), 8);
    try {
        peer_->post(entry("count"));
        FAIL() << "it would have waited for itself";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid);
        EXPECT_NE(std::string(error.what()).find("neither posted nor dropped"), std::string::npos) << error.what();
    }
    frame.post();
    EXPECT_EQ(count(), 3);
}

TEST_P(HotPath, OthersWaitForAFrameThatIsBeingFilled) {
    EXPECT_EQ(count(), 1);
    CallFrame frame = peer_->begin(entry("count"), 8);
    std::thread other([&] { EXPECT_EQ(count(), 3); });
    const auto core = detail::Inside::core(*peer_);
    EXPECT_TRUE(soon([&] { return EngineView::waits_for_room(core->first_engine()) == 1; })) << "it does not wait";
    frame.post();
    other.join();
}

TEST_P(HotPath, AMessageIsSentAgainWithAnotherPayload) {
    Message message(entry("echo"), 4);
    for (const std::string_view words : {"once", "more", "last"}) {
        std::ranges::copy(bytes(words), message.payload().begin());
        EXPECT_EQ(text(peer_->call(message).get()), words);
    }
    const Server second(GetParam());
    EXPECT_EQ(text(node_->connect(second.address()).call(message).get()), "last");
}

TEST_P(HotPath, ABatchRunsEachOfItsPosts) {
    EXPECT_EQ(count(), 1);
    const auto before = peer_->counters().frames_sent;
    {
        Batch batch = peer_->batch(entry("count"), 8);
        for (int i = 0; i < 1000; ++i) (void)batch.add();
    }
    EXPECT_LT(peer_->counters().frames_sent - before, 20U);
    int looks =
        0;  // each counts itself; and a batch that the kernel interrupts is a long function, beside which others run
    EXPECT_TRUE(soon([&] { return count() == 1001 + ++looks; })) << looks;
}

TEST_P(HotPath, ABatchOfAFunctionThatThePeerDoesNotKnow) {
    {
        Batch batch = peer_->batch(entry("count"), 0);
        for (int i = 0; i < 10; ++i) (void)batch.add();
    }
    EXPECT_EQ(count(), 11);
}

TEST_P(HotPath, ManyPostsShareMessagesAndNoneIsLost) {
    EXPECT_EQ(count(), 1);
    for (int i = 0; i < 100'000; ++i) peer_->post(entry("count"));
    // They start in order. One that another thread's core was taken away from may end later than those behind it.
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    long last = 0, calls = 1;
    do {
        last = count();
        ++calls;
    } while (last != 100'000 + calls && std::chrono::steady_clock::now() < until);
    EXPECT_EQ(last, 100'000 + calls);
}

// Some of them are long: their threads lose the lead, and others go on with those behind them.
TEST_P(HotPath, PostsOfWhichSomeAreLongRunOnceEach) {
    const Package package = Package::open(test::package("uneven.c"));
    const Entry uneven = package.entry("uneven"), sum = package.entry("sum");
    using CountAndSum = std::array<std::uint64_t, 2>;
    const auto all = [&] { return as<CountAndSum>(peer_->call(sum).get()); };
    EXPECT_EQ(all(), CountAndSum());
    CountAndSum sent{};
    for (std::uint64_t i = 1; i <= 3000; ++i) {
        const std::uint64_t payload[2] = {i, i % 500 == 0 ? 5U : 0U};  // a number, and ms
        peer_->post(uneven, std::as_bytes(std::span(payload)));
        sent = {sent[0] + 1, sent[1] + i};
    }
    EXPECT_TRUE(soon([&] { return all()[0] >= sent[0]; }));
    EXPECT_EQ(all(), sent);
}

TEST_P(HotPath, APingRunsNothing) {
    EXPECT_TRUE(peer_->ping().get().empty());
    EXPECT_TRUE(peer_->ping(bytes("0123456789")).get().empty());
    peer_->deliver(bytes("and gone"));
    EXPECT_EQ(count(), 1);
}

TEST_P(HotPath, AResultThatDoesNotFitIsAnError) {
    std::byte small[2];
    EXPECT_EQ(error_of([&] { (void)peer_->call(entry("echo"), bytes("three")).get_into(small); }).code(),
              ErrorCode::invalid);
}

TEST_P(HotPath, InlinedCodeIsInEveryFrame) {
    const Entry inlined = entry("count").sent(Sending::always_inlined);
    const auto first = peer_->counters();
    for (long i = 1; i <= 20; ++i) EXPECT_EQ(as<long>(peer_->call(inlined).get()), i);
    EXPECT_GT(peer_->counters().frame_bytes_last, 300U);
    EXPECT_EQ(peer_->counters().code_bytes_sent, first.code_bytes_sent);  // none ahead of the calls
    EXPECT_EQ(count(), 21);                                               // the same statics as by handle
    EXPECT_LT(peer_->counters().frame_bytes_last, 100U);
}

TEST_P(HotPath, InlinedCodeIsInEveryFrameOfABatchAndOfWhatIsBegun) {
    EXPECT_EQ(count(), 1);
    const Entry inlined = entry("count").sent(Sending::always_inlined);
    CallFrame frame = peer_->begin(inlined, 8);
    EXPECT_EQ(as<long>(frame.call().get()), 2);
    EXPECT_GT(peer_->counters().frame_bytes_last, 300U);
    EXPECT_EQ(count(), 3);
    EXPECT_LT(peer_->counters().frame_bytes_last, 100U);
    {
        Batch batch = peer_->batch(inlined, 8);
        for (int i = 0; i < 10; ++i) (void)batch.add();
    }
    EXPECT_GT(peer_->counters().frame_bytes_last, 300U);
    EXPECT_EQ(count(), 14);
}

TEST_P(HotPath, InlinedCodeThatKeepsBeingCalledIsCachedByItself) {
    const Entry inlined = entry("count").sent(Sending::inlined);
    EXPECT_EQ(as<long>(peer_->call(inlined).get()), 1);
    EXPECT_GT(peer_->counters().frame_bytes_last, 300U);
    for (long i = 2; i <= 20; ++i) EXPECT_EQ(as<long>(peer_->call(inlined).get()), i);
    EXPECT_LT(peer_->counters().frame_bytes_last, 100U);
    // Also where no answer tells the handle in time.
    const Entry other = entry("nothing").sent(Sending::inlined);
    for (int i = 0; i < 50; ++i) peer_->post(other);
    EXPECT_EQ(count(), 21);
}

TEST_P(HotPath, InlinedCodeSurvivesEviction) {
    const Server forgetful(GetParam(), {.command = {"--code-budget", "0"},
                                        .set = [](NodeOptions& options) { options.code_bytes_max = 0; }});
    const Peer peer = node_->connect(forgetful.address());
    const Entry inlined = entry("count").sent(Sending::always_inlined);
    for (long i = 1; i <= 20; ++i) EXPECT_EQ(as<long>(peer.call(inlined).get()), i);
}

TEST_P(HotPath, InlinedCodeThatIsCalledByItsHandleAfterwardsSurvivesEviction) {
    const Server forgetful(GetParam(), {.command = {"--code-budget", "0"},
                                        .set = [](NodeOptions& options) { options.code_bytes_max = 0; }});
    const Peer peer = node_->connect(forgetful.address());
    const Entry inlined = entry("count").sent(Sending::inlined);
    for (long i = 1; i <= 20; ++i) ASSERT_EQ(as<long>(peer.call(inlined).get()), i);
    EXPECT_LT(peer.counters().frame_bytes_last, 100U);
    EXPECT_EQ(as<long>(peer.call(entry("count")).get()), 21);
}

// It is no fault of whoever sent it.
TEST_P(HotPath, InlinedCodeThatANodeHasNoRoomForCostsItsCallAlone) {
    const Server full(GetParam(), {.command = {"--known-packages", "1"},
                                   .set = [](NodeOptions& options) { options.packages_max = 1; }});
    const Peer peer = node_->connect(full.address());
    EXPECT_EQ(as<long>(peer.call(entry("count")).get()), 1);
    const Package other = Package::open(package("plain.c", {"-DANSWER=1"}));
    try {
        (void)peer.call(other.entry("plain").sent(Sending::always_inlined)).get();
        FAIL() << "the node knows a package more than it may";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::overloaded) << error.what();
    }
    EXPECT_EQ(as<long>(peer.call(entry("count")).get()), 2);
}

TEST_P(HotPath, WhatHasNoImageForThePeerCannotBeInlined) {
    const Package foreign = Package::open(package("basics.c", {"--target", "aarch64-linux-gnu"}, "foreign"));
    try {
        (void)peer_->call(foreign.entry("count").sent(Sending::always_inlined));
        FAIL() << "it has no image for this machine";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported);
    }
}

// ---- leader and followers

TEST_P(HotPath, ALongFunctionHoldsUpNobodyElse) {
    NodeOptions options = options_;
    Node other(started(options));
    const Peer second = other.connect(server_->address());
    EXPECT_EQ(count(), 1);
    EXPECT_EQ(as<long>(second.call(entry("count")).get()), 2);
    RawCall long_one = peer_->call(entry("meet"));  // it waits for a second one
    EXPECT_TRUE(soon([&] { return node_->poll(), as<bool>(second.call(entry("meeting")).get()); }));
    for (long i = 3; i < 103; ++i) EXPECT_EQ(as<long>(second.call(entry("count")).get()), i);
    (void)second.call(entry("meet")).get();
    EXPECT_TRUE(as<bool>(long_one.get())) << "the others waited for its end";
}

// Behind a long function of the same peer, too; and its frame stays as it is while others go round the mailbox.
TEST_P(HotPath, CallsOfOnePeerOverlap) {
    for (int round = 0; round < 3; ++round) {  // the second time it is known to be long
        RawCall first = peer_->call(entry("meet"), {});
        for (int i = 0; i < 20; ++i) EXPECT_EQ(text(peer_->call(entry("echo"), bytes("short")).get()), "short");
        RawCall second = peer_->call(entry("meet"), {});
        for (int i = 0; i < 20; ++i) EXPECT_EQ(text(peer_->call(entry("echo"), bytes("short")).get()), "short");
        EXPECT_TRUE(as<bool>(first.get()) && as<bool>(second.get())) << "they ran one after the other";
    }
}

// The frame of a long function keeps the place of all that came after it. They have run by the time that it ends, and the leader sleeps:
// the place has to be given back then, too.
TEST_P(HotPath, WhoWaitsForRoomBehindALongFunctionGetsIt) {
    EXPECT_EQ(count(), 1);
    const unsigned long_ms = 200;
    peer_->post(entry("nap"), bytes_of(long_ms));
    for (int i = 0; i < 20'000; ++i) peer_->post(entry("count"));  // the ring has 16,384 lines
    // A run that the machine interrupts may end after a later one.
    int asked = 0, counted = 0;
    EXPECT_TRUE(soon([&] { return (counted = count()) == 20'001 + ++asked; })) << counted << " at call " << asked;
}

TEST_P(HotPath, MoreLongFunctionsThanThreadsAllEnd) {
    const unsigned long_ms = 30;
    std::vector<RawCall> naps;
    naps.reserve(20);
    for (int i = 0; i < 20; ++i) naps.push_back(peer_->call(entry("nap"), bytes_of(long_ms)));
    for (RawCall& nap : naps) EXPECT_EQ(as<unsigned>(nap.get()), long_ms);
    EXPECT_EQ(count(), 1);
}

TEST_P(HotPath, WithOneThreadFunctionsRunOneAfterTheOther) {
    const Server single(GetParam(),
                        {.command = {"--threads", "1"}, .set = [](NodeOptions& options) { options.threads = 1; }});
    const Peer peer = node_->connect(single.address());
    const unsigned long_ms = 200;
    RawCall first = peer.call(entry("run_alone"), bytes_of(long_ms));
    RawCall second = peer.call(entry("run_alone"), bytes_of(long_ms));
    EXPECT_TRUE(as<bool>(first.get()) && as<bool>(second.get())) << "they ran at once";
}

TEST_P(HotPath, EveryWayOfWaitingServes) {
    const ServerOptions ways[] = {
        {{"--waiting", "latency"}, [](NodeOptions& options) { options.waiting = Waiting::latency; }},
        {{"--waiting", "balanced"}, [](NodeOptions& options) { options.waiting = Waiting::balanced; }},
        {{"--waiting", "frugal"}, [](NodeOptions& options) { options.waiting = Waiting::frugal; }}};
    for (const ServerOptions& way : ways) {
        const Server node(GetParam(), way);
        const Peer peer = node_->connect(node.address());
        for (long i = 1; i <= 20; ++i) {
            EXPECT_EQ(as<long>(peer.call(entry("count")).get()), i) << way.command.back();
            if (i % 5 == 0) std::this_thread::sleep_for(milliseconds(5));  // asleep by now, or not
        }
    }
}

// A node with threads of its own gives the lead to threads that wait, and takes it back.
TEST_P(HotPath, ThreadsOfOneClientShareItsLead) {
    NodeOptions options = options_;
    options.own_thread = true;
    Node client(started(options));
    const Peer peer = client.connect(server_->address());
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 500; ++i) {
                const std::string words = std::to_string(t) + ":" + std::to_string(i);
                if (text(peer.call(entry("echo"), bytes(words)).get()) != words) ++wrong;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

// A RawCall keeps what it points to, whatever goes first.
TEST_P(HotPath, ACallMayOutliveItsNode) {
    std::optional<RawCall> call;
    {
        Node client(started(options_));
        call.emplace(client.connect(server_->address()).call(entry("nap"), bytes_of(50U)));
    }
    EXPECT_EQ(error_of([&] { (void)call->get(); }).code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace rove::test
