// How calls end: OwnCalls and Answers by themselves, beside peers whose other end the test reads.
#include <gtest/gtest.h>

#include <cstring>

#include "answering_parts.hpp"
#include "program/callables.hpp"

namespace rove::test {
namespace {

using fabric::Traffic;
using wire::Kind;

// ---- OwnCalls

using OwnCallsTest = AnsweringParts;

TEST_F(OwnCallsTest, ACallEndsWithTheFirstAnswer) {
    PeerState& peer = neighbours_.add(2);
    const CallId first = call(peer);
    answer(peer, first, "yes");
    answer(peer, first, "no");
    EXPECT_TRUE(own_calls_.test(first));
    const Result<CallEnd> end = own_calls_.finish(first);
    ASSERT_TRUE(end);
    EXPECT_EQ(as_text(Bytes(end->data)), "yes");
    EXPECT_EQ(end->node, 2U);
    EXPECT_EQ(end->ran, RanAs::bitcode);
    const CallId second = call(peer);
    EXPECT_EQ(second.slot, first.slot) << "the slot is free again";
    answer(peer, first, "of the call before");
    EXPECT_FALSE(own_calls_.test(second));
    answer(peer, second, "its own");
    EXPECT_EQ(end_of(second), "value: its own");
}

TEST_F(OwnCallsTest, OnlyWhoWasAskedAnswersOrAMemberThatItMayHaveBeenSentOnTo) {
    PeerState& asked = neighbours_.add(2);
    PeerState& fellow = neighbours_.add(3);
    PeerState& client = neighbours_.add(kClientBit | 1);
    const CallId of_member = call(asked), of_client = call(client);
    answer(client, of_member, "a client's");
    EXPECT_FALSE(own_calls_.test(of_member));
    answer(fellow, of_member, "a fellow's");
    EXPECT_EQ(end_of(of_member), "value: a fellow's");
    answer(asked, of_client, "of another");
    EXPECT_FALSE(own_calls_.test(of_client));
    answer(client, of_client, "its own");
    EXPECT_EQ(end_of(of_client), "value: its own");
}

TEST_F(OwnCallsTest, AnErrorIsTakenApart) {
    PeerState& peer = neighbours_.add(2);
    const CallId failed = call(peer);
    answer(peer, failed, std::string_view("std::range_error\0it is too far", 30), wire::kError | wire::kThrown,
           static_cast<std::uint8_t>(ErrorCode::failed));
    const Result<CallEnd> end = own_calls_.finish(failed);
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().exception_type(), "std::range_error");
    EXPECT_TRUE(contains(end.error().message(), "it is too far")) << end.error().message();
}

TEST_F(OwnCallsTest, WhyCodeCouldNotGoAlongIsSaidWhereItIsLacking) {
    PeerState& peer = neighbours_.add(2);
    static detail::Callable function;
    function.name = "count(int)";
    (void)function.code.get(
        [] { return new detail::Callable::Code{.shipped = {}, .package = {}, .why_not = "it reaches limit"}; });
    const std::string why = function.name;
    const auto words = [&](std::string_view answered, ErrorCode code, std::uint8_t flags) {
        const CallId asked = call(peer);
        {
            const Hold hold(idle_.lead.mutex());
            own_calls_.table().flying(asked)->not_shipped = &function;
        }
        answer(peer, asked, answered, flags, static_cast<std::uint8_t>(code));
        return end_of(asked);
    };
    EXPECT_EQ(words("it is not resident", ErrorCode::unsupported, wire::kError),
              "unsupported: count(int): it is not resident: it reaches limit");
    EXPECT_FALSE(contains(words("it is too far", ErrorCode::failed, wire::kError), why));
    EXPECT_FALSE(contains(
        words(std::string_view("E\0by itself", 11), ErrorCode::unsupported, wire::kError | wire::kThrown), why));
    const CallId next = call(peer);
    answer(peer, next, "it is not there", wire::kError, static_cast<std::uint8_t>(ErrorCode::unsupported));
    EXPECT_FALSE(contains(end_of(next), why)) << "in the same slot";
}

TEST_F(OwnCallsTest, WhatIsLateEndsAndItsAnswerIsDropped) {
    PeerState& peer = neighbours_.add(2);
    const CallId late = call(peer), other = call(peer);
    own_calls_.limit(late, Clock::now() - std::chrono::seconds(1));
    {
        const Hold hold(idle_.lead.mutex());
        EXPECT_TRUE(own_calls_.first_deadline());
        EXPECT_EQ(own_calls_.end_late(), 1U);
        EXPECT_EQ(own_calls_.end_late(), 0U);
        EXPECT_FALSE(own_calls_.first_deadline());
    }
    answer(peer, late, "too late");
    EXPECT_TRUE(contains(end_of(late), "timed_out: node 2 gave no answer"));
    EXPECT_FALSE(own_calls_.test(other));
}

TEST_F(OwnCallsTest, MemoryThatComesTooLateIsFreedThere) {
    PeerState& peer = neighbours_.add(2);
    const CallId allocation = call(peer), other = call(peer);
    own_calls_.expect_memory(allocation);
    own_calls_.cancel(allocation);
    own_calls_.cancel(other);
    answer(peer, allocation, "a place");
    answer(peer, allocation, "the same place");
    answer(peer, other, "no memory");
    EXPECT_EQ(freed_, (std::vector<std::pair<NodeId, std::string>>{{2, "a place"}}));
    own_calls_.forget(allocation);
    own_calls_.forget(other);
}

TEST_F(OwnCallsTest, WhoAskedIsToldOnceAndNotWhoHasTakenItBack) {
    PeerState& peer = neighbours_.add(2);
    const auto notify = [](void*) {};
    char first[] = "first", second[] = "second", third[] = "third";
    const CallId told = call(peer), taken_back = call(peer), forgotten = call(peer);
    EXPECT_TRUE(own_calls_.notify(told, notify, first));
    EXPECT_TRUE(own_calls_.notify(taken_back, notify, second));
    EXPECT_TRUE(own_calls_.notify(forgotten, notify, third));
    EXPECT_TRUE(own_calls_.notify(taken_back, nullptr, nullptr));
    for (const CallId each : {told, taken_back, forgotten}) answer(peer, each, "");
    own_calls_.forget(forgotten);
    EXPECT_FALSE(own_calls_.notify(taken_back, notify, second)) << "it has ended";
    Hold hold(idle_.lead.mutex());
    Lead::Turn turn{.lock = hold.lock(), .baton = {.own = false}};
    idle_.lead.take(turn);
    EXPECT_TRUE(own_calls_.has_ends_to_tell());
    while (own_calls_.has_ends_to_tell()) (void)own_calls_.tell_of_ends(turn);
    EXPECT_EQ(told_, std::vector<std::string>{"first"});
    idle_.lead.give(turn);
}

TEST_F(OwnCallsTest, WhoGoesEndsItsCallsAndTheEndOfTheNodeAll) {
    PeerState& one = neighbours_.add(2);
    PeerState& other = neighbours_.add(3);
    const CallId to_one = call(one), to_other = call(other);
    {
        const Hold hold(idle_.lead.mutex());
        own_calls_.peer_left(one, Error(ErrorCode::disconnected, "it went"));
    }
    EXPECT_EQ(end_of(to_one), "disconnected: it went");
    EXPECT_FALSE(own_calls_.test(to_other));
    const Hold hold(idle_.lead.mutex());
    own_calls_.close(Error(ErrorCode::cancelled, "the end"));
    EXPECT_EQ(own_calls_.table().find(to_other)->error()->message(), "the end");
    EXPECT_FALSE(own_calls_.table().begin(&other)) << "no call begins any more";
}

// ---- Answers

using AnswersTest = AnsweringParts;

TEST_F(AnswersTest, AReplyNamesTheCallAndWhoHasRunIt) {
    PeerState& peer = neighbours_.add(2);
    const std::string text = "twelve bytes";
    {
        const Hold hold(idle_.lead.mutex());
        answers_.end_at_once(call_from(2), RanAs::resident, Bytes(as_bytes(text)));
    }
    const auto received = neighbours_.received_by(peer);
    ASSERT_EQ(received.size(), 1U);
    const wire::FrameHeader& header = received.front().header;
    EXPECT_EQ(header.kind, Kind::reply);
    EXPECT_EQ(header.handle, neighbours_.routes.id());
    EXPECT_EQ(header.node, 2U);
    EXPECT_EQ(header.call, 5);
    EXPECT_EQ(header.generation, 9U);
    EXPECT_EQ(header.status, static_cast<std::uint8_t>(RanAs::resident));
    EXPECT_EQ(as_text(Bytes(received.front().payload)), text);
}

TEST_F(AnswersTest, APostHasNoAnswer) {
    PeerState& peer = neighbours_.add(2);
    const Hold hold(idle_.lead.mutex());
    answers_.end_at_once(call_from(2, false), RanAs::image);
    answers_.end_with_error(call_from(2, false), Error(ErrorCode::failed, "nobody hears of it"));
    EXPECT_TRUE(neighbours_.received_by(peer).empty());
}

TEST_F(AnswersTest, AnErrorIsCutToWhatAFrameMayCarry) {
    PeerState& peer = neighbours_.add(2);
    answers_.reply_error(call_from(2), Error(ErrorCode::refused, std::string(2 * wire::kErrorBytesMax, 'x')));
    const auto received = neighbours_.received_by(peer);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received.front().header.flags, wire::kError);
    EXPECT_EQ(received.front().header.status, static_cast<std::uint8_t>(ErrorCode::refused));
    EXPECT_EQ(received.front().payload.size(), wire::kErrorBytesMax);
}

TEST_F(AnswersTest, AnAnswerToThisNodeEndsItsCall) {
    PeerState& peer = neighbours_.add(2);
    const CallId own = call(peer);
    const Hold hold(idle_.lead.mutex());
    wire::CallContext to = call_from(neighbours_.routes.id());
    to.generation = own.generation;
    to.call = own.slot;
    answers_.end_at_once(to, RanAs::image, Bytes(as_bytes(std::string_view("here"))));
    EXPECT_EQ(as_text(own_calls_.table().find(own)->data()), "here");
}

TEST_F(AnswersTest, RepliesKeepTheirOrderWhereSomeWaitForRoom) {
    PeerState& peer = neighbours_.add(2);
    const ByteBuffer large(60'000);
    unsigned sent = 0;
    {
        const Hold hold(idle_.lead.mutex());
        for (; peer.outbox_of(Traffic::prompt).is_empty(); ++sent)
            answers_.end_at_once(call_from(2), RanAs::image, large);
        answers_.end_at_once(call_from(2), RanAs::image);  // for which there is room
    }
    EXPECT_EQ(neighbours_.received_by(peer).size(), sent - 1);
    EXPECT_EQ(neighbours_.sender.flush(peer), 2U);
    const auto rest = neighbours_.received_by(peer);
    ASSERT_EQ(rest.size(), 2U);
    EXPECT_EQ(rest.front().payload.size(), large.size());
    EXPECT_TRUE(rest.back().payload.empty());
}

TEST_F(AnswersTest, WhatIsLargerThanAFrameGoesInParts) {
    PeerState& peer = neighbours_.add(2);
    ByteBuffer large(wire::kPayloadBytesMax + wire::kPartBytesMax);
    for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i % 251);
    ASSERT_TRUE(answers_.reply(call_from(2), RanAs::image, large));
    const auto received = neighbours_.received_by(peer);
    const std::size_t parts = (large.size() + wire::kPartBytesMax - 1) / wire::kPartBytesMax;
    ASSERT_EQ(received.size(), parts + 1) << "and the reply";
    ByteBuffer whole;
    for (const auto& each : std::span(received).first(parts)) {
        EXPECT_EQ(each.header.kind, Kind::part);
        EXPECT_EQ(each.header.handle, received.back().header.handle) << "which node answers";
        wire::Part part;
        ASSERT_EQ(each.extra.size(), sizeof part);
        std::memcpy(&part, each.extra.data(), sizeof part);
        EXPECT_EQ(part.offset, whole.size());
        EXPECT_EQ(part.total_bytes, large.size());
        whole.insert(whole.end(), each.payload.begin(), each.payload.end());
    }
    EXPECT_EQ(whole, large);
    EXPECT_EQ(received.back().header.kind, Kind::reply);
    EXPECT_EQ(received.back().header.flags, wire::kParts);
}

TEST_F(AnswersTest, AResultOverTheLimitIsRefusedAndTheCallStaysOpen) {
    PeerState& peer = neighbours_.add(2);
    const ByteBuffer large(wire::kMessageBytesMax + 1);
    const Status replied = answers_.reply(call_from(2), RanAs::image, large);
    ASSERT_FALSE(replied);
    EXPECT_EQ(replied.error().code(), ErrorCode::invalid);
    EXPECT_TRUE(neighbours_.received_by(peer).empty());
}

}  // namespace
}  // namespace rove::test
