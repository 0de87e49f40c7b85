// Dispatcher and Turns: how an engine handles each frame that arrives, and one turn, with peers that are only the far ends of links.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "lone_engine.hpp"
#include "program/residents.hpp"
#include "rove/rove.h"

namespace rove::test {

using namespace std::chrono_literals;

namespace {

using wire::Kind;

std::vector<std::string> ran;  // the payloads that note() was called with

void note(rove_here* /*here*/, const void* payload, std::size_t size) {
    ran.emplace_back(static_cast<const char*>(payload), size);
}
void twice(rove_here* here, const void* payload, std::size_t size) {
    std::string result(static_cast<const char*>(payload), size);
    result += result;
    (void)rove_reply(here, result.data(), result.size());
}
void answers_twice(rove_here* here, const void* payload, std::size_t size) {
    const int first = rove_reply(here, payload, size), second = rove_reply(here, payload, size);
    ran.push_back(fmt::format("{} {}", first, second));
}
void throws(rove_here* /*here*/, const void* /*payload*/, std::size_t /*size*/) {
    throw std::range_error("it is too far");
}

class DispatcherTest : public LoneEngine {
protected:
    static FunctionId id(unsigned char first) {
        std::array<std::byte, sizeof(FunctionId)> bytes{std::byte{first}, std::byte{0xD1}};
        return FunctionId::from(bytes);
    }
    static const Resident& resident(unsigned char first, const char* name, code::EntryPoint entry) {
        if (const Resident* known = Residents::find(id(first))) return *known;
        return Residents::add({.id = id(first), .name = name, .signature = "void ()", .schema = 1, .entry = entry});
    }
    void SetUp() override {
        ran.clear();
        for (const auto& [number, name, entry] :
             {std::tuple(std::uint8_t{1}, "note", &note), std::tuple(std::uint8_t{2}, "twice", &twice),
              std::tuple(std::uint8_t{3}, "throws", &throws),
              std::tuple(std::uint8_t{4}, "answers_twice", &answers_twice)})
            (void)resident(number, name, entry);
    }
};

TEST_F(DispatcherTest, ACallByNameIsAnsweredAndItsHandleTold) {
    Far far = meet(1);
    call(far, id(2), "ab");
    const auto received = turn(far);
    const auto replies = of_kind(received, Kind::reply), binds = of_kind(received, Kind::bind);
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_EQ(as_text(Bytes(replies[0].payload)), "abab");
    EXPECT_EQ(replies[0].header.call, 1);
    EXPECT_EQ(replies[0].header.node, far.id);
    EXPECT_EQ(replies[0].header.status, static_cast<std::uint8_t>(RanAs::resident));
    ASSERT_EQ(binds.size(), 1U);
    send(far, {.kind = Kind::call, .handle = binds[0].header.handle, .node = far.id, .call = 2}, {}, "c");
    const auto next = turn(far);
    ASSERT_EQ(next.size(), 1U) << "no second bind";
    EXPECT_EQ(as_text(Bytes(next[0].payload)), "cc");
}

TEST_F(DispatcherTest, CallsOfOnePeerRunInTheirOrderAndPostsHaveNoAnswer) {
    Far far = meet(1);
    for (const char* each : {"1", "2", "3", "4"}) call(far, id(1), each, wire::kNoReply);
    EXPECT_TRUE(of_kind(turn(far), Kind::reply).empty());
    EXPECT_EQ(ran, (std::vector<std::string>{"1", "2", "3", "4"}));
}

// The first post tells the handle. Those that are like the one before them are run without being asked everything again; all others end that.
TEST_F(DispatcherTest, PostsOfOneFunctionRunOnceEachInTheirOrderWhateverIsBetweenThem) {
    Far far = meet(1);
    const auto handle_of = [&](unsigned char function) {
        call(far, id(function), "0", wire::kNoReply);
        const auto binds = of_kind(turn(far), Kind::bind);
        EXPECT_EQ(binds.size(), 1U);
        return binds.empty() ? 0 : binds[0].header.handle;
    };
    const std::uint32_t note = handle_of(1), throws = handle_of(3), twice = handle_of(2);
    const auto post = [&](std::uint32_t handle, const char* payload) {
        send(far, {.kind = Kind::call, .flags = wire::kNoReply, .handle = handle, .node = far.id}, {}, payload);
    };
    ran.clear();
    std::vector<std::string> expected;
    for (int round = 0; round < 40; ++round)  // more than one turn's
        for (const char* each :
             {"a", "b", "c", "longer than the others, and than what fits into one line of the ring", "d"}) {
            post(note, each);
            expected.emplace_back(each);
            if (round % 3 == 0) post(throws, each);
            if (round % 5 == 0) post(twice, each);
            if (round % 7 == 0)
                send(far, {.kind = Kind::call, .handle = twice, .node = far.id, .call = ++far.calls}, {}, each);
        }
    const auto replies = of_kind(turn(far), Kind::reply);
    EXPECT_EQ(ran, expected);
    EXPECT_EQ(replies.size(), 6U * 5U) << "of posts there are none";
    EXPECT_TRUE(is_linked(far));
}

// Each ends its own call: what the one before it has done does not count.
TEST_F(DispatcherTest, PostsOfOneFunctionEndEachByItself) {
    Far far = meet(1);
    call(far, id(4), "1", wire::kNoReply);
    const auto binds = of_kind(turn(far), Kind::bind);
    ASSERT_EQ(binds.size(), 1U);
    for (int i = 0; i < 5; ++i)
        send(far, {.kind = Kind::call, .flags = wire::kNoReply, .handle = binds[0].header.handle, .node = far.id}, {},
             "2");
    (void)turn(far);
    EXPECT_EQ(ran, std::vector<std::string>(6, "0 1")) << "the first answer counts, and a second does not";
}

TEST_F(DispatcherTest, ABatchIsACallForEachPayload) {
    Far far = meet(1);
    call(far, id(1), "first", wire::kNoReply);
    const auto binds = of_kind(turn(far), Kind::bind);
    ASSERT_EQ(binds.size(), 1U);
    std::string both(2 * wire::batch_stride(3), ' ');
    both.replace(0, 3, "one");
    both.replace(wire::batch_stride(3), 3, "two");
    send(far,
         {.kind = Kind::batch,
          .flags = wire::kNoReply,
          .handle = binds[0].header.handle,
          .generation = 3,
          .node = far.id},
         {}, both);
    (void)turn(far);
    EXPECT_EQ(ran, (std::vector<std::string>{"first", "one", "two"}));
}

TEST_F(DispatcherTest, WhatAFunctionThrowsIsItsCallsError) {
    Far far = meet(1);
    call(far, id(3), "");
    const auto replies = of_kind(turn(far), Kind::reply);
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_EQ(replies[0].header.flags, wire::kError);
    EXPECT_EQ(replies[0].header.status, static_cast<std::uint8_t>(ErrorCode::failed));
    EXPECT_EQ(as_text(Bytes(replies[0].payload)), "throws on the test's node let an exception out: it is too far");
    EXPECT_TRUE(is_linked(far));
}

TEST_F(DispatcherTest, AFunctionWithoutAReplyIsAnsweredWithNothing) {
    Far far = meet(1);
    call(far, id(1), "x");
    const auto replies = of_kind(turn(far), Kind::reply);
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_EQ(replies[0].header.flags, 0);
    EXPECT_TRUE(replies[0].payload.empty());
}

TEST_F(DispatcherTest, ACallWhoseCodeIsNotHereIsRefusedByANodeThatTakesNone) {
    Far far = meet(1);
    send(far, {.kind = Kind::call, .flags = wire::kById, .node = far.id, .call = 1}, id(9).raw(), "x");
    const auto replies = of_kind(turn(far), Kind::reply);
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_EQ(replies[0].header.flags & wire::kError, wire::kError);
    EXPECT_EQ(replies[0].header.status, static_cast<std::uint8_t>(ErrorCode::refused));
    EXPECT_TRUE(is_linked(far)) << "an honest mistake";
}

// Or the next call from there would be taken for it.
TEST_F(DispatcherTest, WhatACallHasWaitedForGoesWhereItIsRefused) {
    Far far = meet(1);
    {
        const Hold hold(engine_.lock());
        far.peer->calls.parked.emplace().function = id(1);
    }
    send(far, {.kind = Kind::call, .flags = wire::kById, .node = far.id, .call = 1}, id(9).raw(), "x");
    ASSERT_EQ(of_kind(turn(far), Kind::reply).size(), 1U);
    const Hold hold(engine_.lock());
    EXPECT_FALSE(far.peer->calls.parked);
}

TEST_F(DispatcherTest, AHandleThatIsNotKnownIsNoOtherCallsFunction) {
    Far far = meet(1);
    call(far, id(1), "a");
    (void)turn(far);
    {
        const Hold hold(engine_.lock());
        Parked& parked = far.peer->calls.parked.emplace();
        parked.function = id(1);
        parked.handle = 5;
    }
    send(far, {.kind = Kind::call, .handle = 0x00FF'FFFF, .node = far.id, .call = 2}, {}, "b");
    const auto replies = of_kind(turn(far), Kind::reply);
    EXPECT_EQ(ran, std::vector<std::string>{"a"}) << "it ran for another call";
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_EQ(replies[0].header.flags & wire::kError, wire::kError);
}

TEST_F(DispatcherTest, WhoBreaksTheRulesIsCutOffAndNothingOfItRuns) {
    const std::vector<wire::FrameHeader> wrong{
        {.kind = Kind::call, .flags = 128},               // no mark of a call
        {.kind = Kind::reply},                            // in the ring of calls
        {.kind = static_cast<Kind>(77)},                  // no kind
        {.kind = Kind::call, .node = client_id(0, 999)},  // for another, whom a client may not speak for
    };
    unsigned number = 0;
    for (wire::FrameHeader header : wrong) {
        Far honest = meet(++number);
        Far far = meet(++number);
        if (header.node == wire::FrameHeader{}.node) header.node = far.id;
        send(far, header, {}, "x");
        call(honest, id(1), "honest", wire::kNoReply);
        (void)turn(far);
        EXPECT_FALSE(is_linked(far)) << static_cast<unsigned>(header.kind);
        EXPECT_TRUE(is_linked(honest));
    }
    EXPECT_EQ(ran, std::vector<std::string>(wrong.size(), "honest"));
}

// ---- Turns

using TurnsTest = DispatcherTest;

TEST_F(TurnsTest, ABusyPeerDoesNotKeepTheOthersWaiting) {
    Far busy = meet(1), other = meet(2);
    for (unsigned i = 0; i < 3 * kBatchMax; ++i) call(busy, id(1), "busy", wire::kNoReply);
    call(other, id(1), "other", wire::kNoReply);
    while (engine_.poll(0ms) > 0) continue;
    const auto place = std::ranges::find(ran, "other") - ran.begin();
    EXPECT_LE(place, kBatchMax);
    EXPECT_EQ(ran.size(), 3 * kBatchMax + 1);
}

TEST_F(TurnsTest, PostsThatAreAlikeDoNotKeepOthersWaiting) {
    Far busy = meet(1), other = meet(2);
    call(busy, id(1), "busy", wire::kNoReply);
    const auto binds = of_kind(turn(busy), Kind::bind);
    ASSERT_EQ(binds.size(), 1U);
    call(other, id(1), "before", wire::kNoReply);
    (void)turn(other);  // so the busy one is next
    ran.clear();
    for (unsigned i = 0; i < 3 * kBatchMax; ++i)
        send(busy, {.kind = Kind::call, .flags = wire::kNoReply, .handle = binds[0].header.handle, .node = busy.id}, {},
             "busy");
    call(other, id(1), "other", wire::kNoReply);
    while (engine_.poll(0ms) > 0) continue;
    EXPECT_LE(std::ranges::find(ran, "other") - ran.begin(), kBatchMax);
    EXPECT_EQ(ran.size(), 3 * kBatchMax + 1);
}

TEST_F(TurnsTest, CallsThatAreLateEndAndWhoAskedIsTold) {
    Far far = meet(1);
    const CallId late =
        value_or_throw(engine_.caller().ping(far.peer, as_bytes(std::string_view("x")), true, Clock::now() + 5ms));
    static bool told = false;
    told = false;
    EXPECT_TRUE(engine_.own_calls().notify(late, [](void*) { told = true; }, nullptr));
    for (const TimePoint until = Clock::now() + 20s; !told && Clock::now() < until;) engine_.poll(1ms);
    EXPECT_TRUE(told);
    const Result<CallEnd> end = engine_.own_calls().finish(late);
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code(), ErrorCode::timed_out);
}

}  // namespace
}  // namespace rove::test
