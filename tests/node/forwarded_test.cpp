// Calls that a node has sent on: whoever made them is told when the next node dies, wherever they were by then. Forwarded stops and kills
// processes, so it runs on the fabrics that join processes; Forward on all.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <optional>
#include <thread>

#include "../api/nodes.hpp"
#include "bytes.hpp"
#include "engine/here.hpp"
#include "peer/sent_on.hpp"
#include "rove/rove.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

// A node that joins another one.
struct Joined {
    NodeProcess first, target;
    explicit Joined(const std::vector<std::string>& options) : first(options), target(with(options, first.address())) {}

private:
    static std::vector<std::string> with(std::vector<std::string> options, const std::string& address) {
        options.insert(options.end(), {"--join", address});
        return options;
    }
};

class Forwarded : public testing::TestWithParam<TestFabric> {
protected:
    void SetUp() override { (void)scratch(); }
    [[nodiscard]] static std::vector<std::string> on_fabric(std::vector<std::string> more = {}) {
        more.insert(more.end(), {"--fabric", GetParam().name});
        return more;
    }
};
ROVE_ON_FABRICS_OF_PROCESSES(Forwarded);

// More than the mailbox holds, so that some wait in the outbox, and leave it when the target has worked for a while.
TEST_P(Forwarded, AllFailWhenTheirTargetDiesAlsoThoseThatHadWaited) {
    Joined nodes(on_fabric({"--threads", "1"}));
    [[maybe_unused]] auto& [first, target] = nodes;
    Node node;
    const Peer peer = node.connect(first.address());
    const Package relay = Package::open(package("relay.c"));
    const std::string payload(16 * 1024, '\1');
    ASSERT_EQ(text(peer.call(relay.entry("relay"), bytes(payload)).get()), "\1");

    target.stop();
    std::vector<RawCall> calls;
    for (int i = 0; i < 100; ++i) calls.push_back(peer.call(relay.entry("relay"), bytes(payload)));
    target.signal(SIGCONT);
    // By the 12th answer an eighth of the mailbox has been given back, and what waited has moved up.
    ASSERT_TRUE(calls[12].wait_for(std::chrono::seconds(20)));
    target.stop();
    // Whoever has answers on the way: they arrive without the target.
    for (int quiet = 0; quiet < 10; ++quiet) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    target.kill_now();
    std::size_t failed = 0;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        ASSERT_TRUE(calls[i].wait_for(std::chrono::seconds(10))) << "nobody reports the end of call " << i;
        try {
            EXPECT_EQ(text(calls[i].get()), "\1");
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::disconnected) << error.what();
            ++failed;
        }
    }
    EXPECT_GT(failed, 50U);
}

// A function that runs long keeps its frame's place in the mailbox where its call was sent on, whatever is sent behind it.
TEST_P(Forwarded, ALongOneFailsToo) {
    Joined nodes(on_fabric());
    [[maybe_unused]] auto& [first, target] = nodes;
    Node node;
    const Peer peer = node.connect(first.address());
    const Package relay = Package::open(package("relay.c"));
    const Entry slowly = relay.entry("relay_slowly");
    ASSERT_EQ(text(peer.call(slowly, bytes(std::string("\1\3", 2))).get()),
              "\1");  // it is known to run long from here on
    RawCall lost = peer.call(slowly, bytes(std::string("\1\377", 2)));
    std::string more(16 * 1024, '\0');
    more[0] = '\1';
    for (int i = 0; i < 40; ++i) ASSERT_EQ(text(peer.call(slowly, bytes(more)).get()), "\1");
    target.kill_now();
    ASSERT_TRUE(lost.wait_for(std::chrono::seconds(15))) << "nobody reports its end";
    try {
        (void)lost.get();
        ADD_FAILURE() << "it has not run to its end";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::disconnected) << error.what();
    }
}

// The target has run them, and gave their places back, but had no room for the answers: those go with it.
TEST_P(Forwarded, ThoseWhoseAnswersWentWithTheirTargetFailToo) {
    Joined nodes(on_fabric({"--threads", "1"}));
    [[maybe_unused]] auto& [first, target] = nodes;
    Node node;
    const Peer peer = node.connect(first.address()), there = node.connect(target.address());
    const Package relay = Package::open(package("relay.c")), basics = Package::open(package("basics.c"));
    const Entry much = relay.entry("relay_much"), echo = basics.entry("echo");
    const auto both = [&](const Peer& of, int times) {
        for (; times > 0; --times) ASSERT_EQ(text(of.call(echo, bytes("x")).get()), "x");
    };
    const std::string payload(4 * 1024, '\1');
    ASSERT_EQ(peer.call(much, bytes(payload)).get().size(), 65536U);
    both(there, 1);

    target.stop();
    std::vector<RawCall> calls;
    for (int i = 0; i < 100; ++i) calls.push_back(peer.call(much, bytes(payload)));
    both(peer, 1);  // all are sent on by now
    first.stop();
    target.signal(SIGCONT);
    both(there, 200);  // in whose time those have run
    target.stop();
    first.signal(SIGCONT);
    calls.push_back(peer.call(much, bytes(payload)));
    both(peer, 1);  // it knows what has been taken
    target.kill_now();
    std::size_t failed = 0;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        ASSERT_TRUE(calls[i].wait_for(std::chrono::seconds(15))) << "nobody reports the end of call " << i;
        try {
            EXPECT_EQ(calls[i].get().size(), 65536U);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::disconnected) << error.what();
            EXPECT_NE(std::string(error.what()).find(target.address()), std::string::npos) << error.what();
            ++failed;
        }
    }
    EXPECT_GT(failed, 20U);
}

// More come and go before it, from many places of their caller's table, and behind it, from one.
TEST_P(Forwarded, ThoseThatAreKeptThereFailTooHoweverManyWereSentOnBesideThem) {
    Joined nodes(on_fabric());
    [[maybe_unused]] auto& [first, target] = nodes;
    Node node;
    const Peer peer = node.connect(first.address());
    const Entry entry = Package::open(package("relay.c")).entry("relay_and_keep");
    ASSERT_EQ(text(peer.call(entry, bytes("\1")).get()), "\1");
    for (int round = 0; round < 5; ++round) {  // together more than are remembered
        std::vector<RawCall> many;
        for (std::size_t i = 0; i < SentOn::kMax / 4; ++i) many.push_back(peer.call(entry, bytes("\1")));
        for (RawCall& each : many) ASSERT_EQ(text(each.get()), "\1");
    }
    std::vector<RawCall> kept;
    for (int i = 0; i < 30; ++i) kept.push_back(peer.call(entry, bytes("\1\1")));
    for (int i = 0; i < 100; ++i) ASSERT_EQ(text(peer.call(entry, bytes("\1")).get()), "\1");
    target.kill_now();
    for (RawCall& each : kept) {
        ASSERT_TRUE(each.wait_for(std::chrono::seconds(15))) << "nobody reports its end";
        EXPECT_EQ(error_of([&] { (void)each.get(); }).code(), ErrorCode::disconnected);
    }
}

// Those that wait for room in the mailbox count as those in it do; and they end as those do.
TEST_P(Forwarded, ThoseThatWaitForRoomCountToo) {
    Joined nodes(on_fabric({"--threads", "1"}));  // each has sent its call on before the next one begins
    auto& [first, target] = nodes;
    Node node;
    const Package package = Package::open(test::package("relay.c"));
    const Entry slow = package.entry("relay"), entry = package.entry("relay_and_keep");
    const Peer peer = node.connect(first.address());
    const std::string large(16 * 1024, '\1');
    std::vector<Error> ends;
    for (const Entry& each : {slow, entry}) ASSERT_EQ(text(peer.call(each, bytes("\1")).get()), "\1");
    for (const bool lives : {true, false}) {
        target.stop();
        std::vector<RawCall> calls;
        for (int i = 0; i < 100; ++i) calls.push_back(peer.call(slow, bytes(large)));  // more than the mailbox holds
        while (calls.size() < SentOn::kMaxOfCaller) calls.push_back(peer.call(entry, bytes("\1")));
        const Error error = error_of([&] { (void)peer.call(entry, bytes("\1")).get(); });
        EXPECT_NE(std::string(error.what()).find("not forwarded"), std::string::npos) << error.what();
        if (lives)
            target.signal(SIGCONT);
        else
            target.kill_now();
        for (std::size_t i = 0; i < calls.size(); ++i) {
            ASSERT_TRUE(calls[i].wait_for(std::chrono::seconds(20))) << "nobody reports the end of call " << i;
            if (lives)
                EXPECT_EQ(text(calls[i].get()), "\1");
            else
                ends.push_back(error_of([&] { (void)calls[i].get(); }));
        }
    }
    const auto were_not_sent = [](const Error& error) {
        return std::string_view(error.what()).find("before the call was sent on") != std::string_view::npos;
    };
    for (const Error& error : ends) EXPECT_EQ(error.code(), ErrorCode::disconnected) << error.what();
    EXPECT_FALSE(were_not_sent(ends.front())) << "it was in the mailbox";
    EXPECT_TRUE(were_not_sent(ends.back())) << "it waited for room";
}

// Its node cannot tell the one that answers to wait. What waits there then is more than it keeps for one that takes nothing.
TEST_P(Forwarded, WhoTakesMuchSlowlyIsNotCutOff) {
    Joined nodes(on_fabric());
    [[maybe_unused]] auto& [first, target] = nodes;
    Node node({.own_thread = false});
    const Package package = Package::open(rove::test::package("relay.c"));
    const Entry entry = package.entry("relay_much");
    const Peer peer = node.connect(first.address());
    EXPECT_EQ(peer.call(entry, bytes("\1")).get().size(), 64 * 1024);
    target.stop();
    std::vector<RawCall> calls;
    for (int i = 0; i < 2'500; ++i) calls.push_back(peer.call(entry, bytes("\1")));
    EXPECT_EQ(peer.call(package.entry("relay_and_keep"), bytes(std::string(1, '\0'))).get().size(), 1)
        << "all are sent on";
    target.signal(SIGCONT);
    for (RawCall& call : calls) {
        while (!call.done()) {
            (void)node.poll();
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        ASSERT_EQ(call.get().size(), 64 * 1024);
    }
}

// Nodes of this process, of which the first is met by clients and sends on to the second.
class Forward : public OnFabrics {
protected:
    void SetUp() override {
        first_.emplace(started(options(true)));
        NodeOptions joining = options(true);
        joining.join = first_->address();
        second_.emplace(started(joining));
        client_.emplace(started(options()));
        met_.emplace(client_->connect(first_->address()).limited(within(std::chrono::seconds(20))));
        ASSERT_EQ(second_->id(), 1U);
    }
    void TearDown() override {
        met_.reset();
        client_.reset();
        second_.reset();
        first_.reset();
    }
    [[nodiscard]] const Peer& first() const { return *met_; }

    std::optional<Node> first_, second_, client_;
    std::optional<Peer> met_;
};
ROVE_ON_FABRICS(Forward);

std::atomic<int> hopped{0};
std::atomic<bool> hop_ends{false};
std::size_t size_of(const std::string& text) {
    return text.size();
}
std::size_t send_large_on(Here& here) {
    return here.peer(1).sync(fn<size_of>, std::string(4'000'000, 'x'));
}
// On node 1 it runs until it is told to end, or calls back for as much as that.
void hop(Here& here, bool calls_back) {
    if (here.node() == 0) {
        (void)rove_forward(here.raw(), 1, &calls_back, sizeof calls_back);
        return;
    }
    ++hopped;
    if (calls_back) (void)here.peer(0).sync(fn<send_large_on>);
    while (!calls_back && !hop_ends) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
// What is sent to the same node beside it has the mailbox, more than it holds, also what such a function waits for itself.
TEST_P(Forward, AFunctionThatRunsLongHoldsNobodyUp) {
    hop_ends = true;
    first().sync(fn<hop>, false);
    hop_ends = false;
    hopped = 0;
    first().post(fn<hop>, false);
    Call<void> call = first().async(fn<hop>, false);
    while (hopped < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(first().sync(fn<send_large_on>), 4'000'000U);
    hop_ends = true;
    call.get();
    first().sync(fn<hop>, true);
}

std::uint32_t sent_on(Here& here) {
    if (here.node() == 0) (void)rove_forward(here.raw(), 1, nullptr, 0);
    return here.node();  // where it was sent on, nobody hears this
}
TEST_P(Forward, WhatIsResidentThereRunsThere) {
    for (int i = 0; i < 3; ++i) {
        Call<std::uint32_t> call = first().async(fn<sent_on>);
        ASSERT_TRUE(call.wait_for(std::chrono::seconds(20)));
        EXPECT_EQ(call.get(), 1U);
    }
}

// The error that a function gets whose call cannot be sent on; it may still answer.
std::vector<int> cannot_be_forwarded(Here& here, std::uint32_t gone) {
    static const std::vector<char> large(Peer::payload_bytes_max() + 1);
    const auto forward = [&](std::uint32_t to, const void* data, std::size_t size) {
        return rove_forward(here.raw(), to, data, size);
    };
    return {forward(1000, nullptr, 0), forward(rove_origin(here.raw()), nullptr, 0), forward(0, nullptr, 1),
            forward(0, large.data(), large.size()), forward(gone, nullptr, 0)};
}
int forwards_after_its_answer(Here& here) {
    (void)rove_reply(here.raw(), nullptr, 0);
    return rove_forward(here.raw(), 0, nullptr, 0);
}
std::atomic<int> second_ending{-1};
void ends_twice(Here& here) {
    second_ending = forwards_after_its_answer(here);
}

TEST_P(Forward, SaysWhatIsWrong) {
    second_.reset();
    // Until the first one has seen that it is gone, the frame is sent, and the call fails instead.
    std::vector<int> errors;
    for (int i = 0; i < 1000 && errors.empty(); ++i) try {
            errors = first().sync(fn<cannot_be_forwarded>, 1U);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::disconnected) << error.what();
        }
    EXPECT_EQ(errors, (std::vector<int>{ROVE_INVALID, ROVE_INVALID, ROVE_INVALID, ROVE_INVALID, ROVE_DISCONNECTED}));
    second_ending = -1;
    first().sync(fn<ends_twice>);
    EXPECT_TRUE(soon([] { return second_ending == ROVE_INVALID; })) << second_ending;
}

// One caller cannot have so many there that others' are forgotten.
TEST_P(Forward, MoreThanACallersShareAreRefused) {
    NodeOptions lone = options(true);
    lone.join = first_->address();
    lone.threads = 1;  // each call has been sent on before the next one begins
    const Node third(started(lone));
    const Package relays = Package::open(package("relay.c"));
    const Entry entry = relays.entry("relay_and_keep");
    const Peer peer = client_->connect(third.address());
    std::vector<RawCall> kept;
    constexpr std::size_t kAtOnce =
        16;  // functions of these run there side by side, and some may not have sent theirs on yet
    for (std::size_t i = 0; i < SentOn::kMaxOfCaller + kAtOnce; ++i) kept.push_back(peer.call(entry, bytes("\1\1")));
    const Error error = error_of([&] { (void)peer.call(entry, bytes("\1")).get(); });
    EXPECT_NE(std::string(error.what()).find("not forwarded"), std::string::npos) << error.what();
    Node modest(started(options()));
    EXPECT_EQ(text(modest.connect(third.address()).call(entry, bytes("\1")).get()), "\1");
    // They have come by another link, so some may still be kept after the first release.
    const Peer second = client_->connect(second_->address());
    unsigned released = 0;
    EXPECT_TRUE(soon([&] {
        released += as<unsigned>(second.call(relays.entry("relay_release")).get());
        return released >= SentOn::kMaxOfCaller;
    })) << released;
}

// By whom they were sent on to, by the node itself that had sent them on, or by way of another one.
TEST_P(Forward, ThoseThatAreAnsweredAreOver) {
    const Entry along = Package::open(package("relay.c")).entry("relay_along");
    std::vector<RawCall> kept;  // so that no place in the caller's table is used again
    for (const std::string& path : {std::string("\1"), std::string("\1\0", 2), std::string("\1\0\1", 3)})
        for (std::size_t i = 0; i <= SentOn::kMaxOfCaller; ++i) {
            kept.push_back(first().call(along, bytes(path)));
            ASSERT_TRUE(kept.back().wait_for(std::chrono::seconds(20)));
            if (i < SentOn::kMaxOfCaller) continue;
            EXPECT_EQ(text(kept.back().get()), path.substr(path.size() - 1));
        }
}

// A function that would send itself on for ever is told when it has gone as far as any may.
std::uint32_t goes_on_and_on(Here& here) {
    const std::uint32_t hops = here.raw()->call.hops;
    if (rove_forward(here.raw(), here.node(), nullptr, 0) == ROVE_OK) return 0;  // nobody hears this
    return hops;
}
TEST_P(Forward, ACallIsSentOn255Times) {
    Call<std::uint32_t> call = first().async(fn<goes_on_and_on>);
    ASSERT_TRUE(call.wait_for(std::chrono::seconds(20)));
    EXPECT_EQ(call.get(), wire::kHopsMax);
}

}  // namespace
}  // namespace rove::test
