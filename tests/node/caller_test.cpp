// How calls are sent: a Caller by itself, beside peers whose other end the test reads.
#include "engine/caller.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "answering_parts.hpp"
#include "some_package.hpp"

namespace rove::test {
namespace {

using fabric::Traffic;
using wire::Kind;

class CallerTest : public AnsweringParts {
protected:
    [[nodiscard]] static Bytes bytes(std::string_view text) { return as_bytes(text); }
    // A function that is called by a name that it has in every program that has it.
    [[nodiscard]] Outgoing to(std::string_view payload, bool wants_reply = true) const {
        return {.callee = {.id = &kFunction, .name = "some:run"},
                .payload = bytes(payload),
                .context = {.wants_reply = wants_reply}};
    }
    std::shared_ptr<PeerState> add(NodeId id) {
        PeerState& added = neighbours_.add(id);
        return added.shared_from_this();
    }
    // The peer tells its handle.
    void bind(PeerState& peer, std::uint32_t handle) {
        const Hold hold(idle_.lead.mutex());
        peer.code.bindings.expect();
        peer.code.bindings.learn(kFunction, handle);
        (void)peer.code.bindings.handle_of(kFunction);
    }
    std::vector<Neighbours::Received> calls_of(const PeerState& peer) {
        return neighbours_.received_by(peer, Traffic::calls);
    }
    std::size_t calls_in_flight() {
        const Hold hold(idle_.lead.mutex());
        return own_calls_.table().used();
    }
    template <typename T>
    static std::string words_of(const Result<T>& result) {
        return result ? "none" : std::string(to_string(result.error().code())) + ": " + result.error().message();
    }

    const FunctionId kFunction = some_package({"run"}, {{Forms::image, 10}})->function_ids()[0];
    const FunctionId kFree{};
    LocalFrames local_{idle_.lead, &IdleLead::name};
    std::vector<std::string> met_;  // the addresses that were reached for
    Caller caller_{{.lead = idle_.lead,
                    .runner = idle_.runner,
                    .routes = neighbours_.routes,
                    .peers = peers_,
                    .link_ends = ends_,
                    .rooms = rooms_,
                    .sender = neighbours_.sender,
                    .exchange = exchange_,
                    .own_functions = own_functions_,
                    .own_calls = own_calls_,
                    .local = local_,
                    .cache = cache_,
                    .spare_memory = spare_,
                    .free_memory = kFree,
                    .meet = [this](const std::string& address, const Caller::PeerPointer& /*peer*/,
                                   Deadline) -> Result<Caller::PeerPointer> {
                        met_.push_back(address);
                        return fail(ErrorCode::disconnected, "nobody listens there");
                    },
                    .name = &IdleLead::name}};
};

TEST_F(CallerTest, AFunctionIsNamedUntilThePeerHasToldItsHandle) {
    const auto peer = add(2);
    const CallId first = value_or_throw(caller_.call(peer, to("first")));
    bind(*peer, 9);
    const CallId second = value_or_throw(caller_.call(peer, to("second")));
    const auto calls = calls_of(*peer);
    ASSERT_EQ(calls.size(), 2U);
    EXPECT_EQ(calls[0].header.kind, Kind::call);
    EXPECT_EQ(FunctionId::from(Bytes(calls[0].extra).first<sizeof(FunctionId)>()), kFunction);
    EXPECT_EQ(as_text(Bytes(calls[0].payload)), "first");
    EXPECT_EQ(calls[0].header.call, first.slot);
    EXPECT_EQ(calls[0].header.generation, first.generation);
    EXPECT_EQ(calls[1].header.handle, 9U);
    EXPECT_TRUE(calls[1].extra.empty());
    EXPECT_EQ(calls[1].header.call, second.slot);
}

TEST_F(CallerTest, APostTakesNoSlot) {
    const auto peer = add(2);
    ASSERT_TRUE(caller_.call(peer, to("by name", false)));
    bind(*peer, 9);
    ASSERT_TRUE(caller_.call(peer, to("by handle", false)));
    EXPECT_EQ(calls_in_flight(), 0U);
    for (const auto& call : calls_of(*peer)) EXPECT_EQ(call.header.flags & wire::kNoReply, wire::kNoReply);
}

TEST_F(CallerTest, WhatIsLateOrTooLargeIsNotSent) {
    const auto peer = add(2);
    Outgoing late = to("late");
    late.deadline = Clock::now() - std::chrono::seconds(1);
    EXPECT_TRUE(words_of(caller_.call(peer, late)).starts_with("timed_out: "));
    const ByteBuffer large(wire::kMessageBytesMax + 1);
    Outgoing too_large = to("");
    too_large.payload = large;
    const std::string refused = words_of(caller_.call(peer, too_large));
    EXPECT_TRUE(refused.starts_with("invalid: some:run: 33554433 bytes")) << refused;
    EXPECT_TRUE(calls_of(*peer).empty());
    EXPECT_EQ(calls_in_flight(), 0U);
}

TEST_F(CallerTest, WhatIsLargerThanAFrameGoesInPartsBeforeItsCall) {
    const auto peer = add(2);
    bind(*peer, 9);
    const ByteBuffer large(wire::kPayloadBytesMax + 1, std::byte{5});
    Outgoing call = to("");
    call.payload = large;
    ASSERT_TRUE(caller_.call(peer, call));
    const auto received = calls_of(*peer);
    ASSERT_GT(received.size(), 1U);
    ByteBuffer whole;
    for (const auto& each : std::span(received).first(received.size() - 1)) {
        EXPECT_EQ(each.header.kind, Kind::part);
        whole.insert(whole.end(), each.payload.begin(), each.payload.end());
    }
    EXPECT_EQ(whole, large);
    EXPECT_EQ(received.back().header.kind, Kind::call);
    EXPECT_EQ(received.back().header.flags & wire::kParts, wire::kParts);
}

TEST_F(CallerTest, PayloadsGoInOneFrameWhereTheFunctionIsKnown) {
    const auto peer = add(2);
    ByteBuffer two(2 * wire::batch_stride(4));
    Outgoing batch = to("", false);
    batch.payload = two;
    ASSERT_TRUE(caller_.post_batch(peer, batch, 4));
    EXPECT_EQ(calls_of(*peer).size(), 2U) << "one by one";
    bind(*peer, 9);
    ASSERT_TRUE(caller_.post_batch(peer, batch, 4));
    const auto together = calls_of(*peer);
    ASSERT_EQ(together.size(), 1U);
    EXPECT_EQ(together[0].header.kind, Kind::batch);
    EXPECT_EQ(together[0].header.generation, 4U) << "bytes of each";
    EXPECT_EQ(together[0].payload.size(), two.size());
}

TEST_F(CallerTest, AFrameThatIsFilledInPlaceKeepsItsThreadsOtherCallsBack) {
    const auto peer = add(2);
    bind(*peer, 9);
    BegunFrame begun = value_or_throw(caller_.begin(peer, to(""), 5));
    ASSERT_NE(begun.link, nullptr);
    EXPECT_EQ(words_of(caller_.call(peer, to("in between"))),
              "invalid: a frame for node 2 that this thread has begun is neither posted nor dropped");
    std::memcpy(begun.place.data(), "hello", 5);
    ASSERT_TRUE(caller_.post_begun(*peer, std::move(begun), true, {}));
    BegunFrame dropped = value_or_throw(caller_.begin(peer, to(""), 5));
    caller_.drop_begun(*peer, std::move(dropped.link));
    ASSERT_TRUE(caller_.call(peer, to("after it")));
    const auto calls = calls_of(*peer);
    ASSERT_EQ(calls.size(), 2U);
    EXPECT_EQ(as_text(Bytes(calls[0].payload)), "hello");
    EXPECT_EQ(as_text(Bytes(calls[1].payload)), "after it");
}

TEST_F(CallerTest, TheBytesOfTheLastFrameAreThoseOfEachKind) {
    const auto peer = add(2);
    const auto last = [&] { return peers_.counters(*peer).frame_bytes_last - wire::kHeaderBytes; };
    ASSERT_TRUE(caller_.call(peer, to("12345")));
    EXPECT_EQ(last(), 5 + sizeof(FunctionId));
    bind(*peer, 9);
    ASSERT_TRUE(caller_.call(peer, to("12345")));
    EXPECT_EQ(last(), 5U);
    ASSERT_TRUE(caller_.post_begun(*peer, value_or_throw(caller_.begin(peer, to(""), 40)), false, {}));
    EXPECT_EQ(last(), 40U);
    ASSERT_TRUE(caller_.ping(peer, bytes("123"), true, {}));
    EXPECT_EQ(last(), 3U);
    const ByteBuffer two(2 * wire::batch_stride(4));
    Outgoing batch = to("", false);
    batch.payload = two;
    ASSERT_TRUE(caller_.post_batch(peer, batch, 4));
    EXPECT_EQ(last(), two.size());
}

TEST_F(CallerTest, APeerThatHasGoneIsReachedForAtItsAddress) {
    PeerIdentity reachable = neighbours_.identity_of(2);
    reachable.address = "127.0.0.1:7002";
    const auto peer = neighbours_.add(reachable).shared_from_this(), guest = add(kClientBit | 1);
    {
        const Hold hold(idle_.lead.mutex());
        for (const auto& each : {peer, guest}) ends_.lose(*each, Error(ErrorCode::disconnected, "it went"));
        for (const auto& each : {peer, guest}) ends_.clean_up(*each);
    }
    EXPECT_EQ(words_of(caller_.call(peer, to("again"))), "disconnected: nobody listens there");
    EXPECT_EQ(met_, std::vector<std::string>{"127.0.0.1:7002"});
    const std::string gone = words_of(caller_.call(guest, to("again")));
    EXPECT_TRUE(gone.starts_with("disconnected: client 1 is gone")) << gone;
    EXPECT_EQ(met_.size(), 1U) << "a client has no address";
    EXPECT_EQ(calls_in_flight(), 0U);
}

TEST_F(CallerTest, WhatBelongsToAMeetingGoesInThatMeetingOnly) {
    const auto peer = add(2);
    const Callee callee{.id = &kFunction, .name = "some:run"};
    const std::uint64_t meeting = peer->meeting();
    caller_.post_in_meeting(*peer, meeting - 1, callee, bytes("of the one before"));
    EXPECT_TRUE(calls_of(*peer).empty());
    caller_.post_in_meeting(*peer, meeting, callee, bytes("of this one"));
    const auto posted = calls_of(*peer);
    ASSERT_EQ(posted.size(), 1U);
    EXPECT_EQ(as_text(Bytes(posted[0].payload)), "of this one");
}

TEST_F(CallerTest, ACallIsSentOnInItsCallersName) {
    const auto next = add(2);
    Onward onward{.node = 2, .function = kFunction, .payload = bytes("on"), .context = call_from(3)};
    ASSERT_TRUE(caller_.send_on(onward));
    const auto calls = calls_of(*next);
    ASSERT_EQ(calls.size(), 1U);
    EXPECT_EQ(wire::context_of({calls[0].header, {}, {}}), call_from(3));
    onward.node = 9;
    EXPECT_EQ(caller_.send_on(onward).error().message(), "there is no node 9: there are 4");
    onward.node = neighbours_.routes.id();
    ASSERT_TRUE(caller_.send_on(onward));
    const Hold hold(idle_.lead.mutex());
    ASSERT_FALSE(local_.is_empty()) << "to this node itself";
    EXPECT_EQ(wire::context_of(wire::frame_in(local_.take_first().front())), call_from(3));
}

TEST_F(CallerTest, NoCallIsSentWhenTheNodeEnds) {
    const auto peer = add(2);
    {
        const Hold hold(idle_.lead.mutex());
        ends_.lose(*peer, Error(ErrorCode::disconnected, "it went"));
        ends_.clean_up(*peer);
        caller_.close();
    }
    EXPECT_TRUE(words_of(caller_.call(peer, to("late"))).starts_with("cancelled: ")) << "and nobody is met again";
    EXPECT_TRUE(met_.empty());
}

}  // namespace
}  // namespace rove::test
