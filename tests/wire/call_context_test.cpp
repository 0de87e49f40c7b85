// What travels with a call: written into frames and read from them, and what of it another call gets.
#include <gtest/gtest.h>

#include "wire/kinds.hpp"

namespace rove::wire {
namespace {

// Each fact has a value that it does not have by default.
constexpr CallContext kCall{.generation = 9, .node = 3, .call = 5, .hops = 7, .wants_reply = false};

// As the receiver sees it, with its sizes as the sender of all frames sets them.
Frame received(const NamedCall& call) {
    Frame frame{call.header, call.extra, {}};
    frame.header.extra_bytes = static_cast<std::uint16_t>(call.extra.size());
    return frame;
}

TEST(CallContext, IsTheSameAfterAFrameHoweverThatNamesItsFunction) {
    const FunctionId id{};
    const Either either{};
    const std::size_t inline_bytes = inline_extension_bytes({});
    const ByteBuffer code(inline_bytes);
    for (const CallContext& call : {kCall, CallContext{}}) {
        const NamedCall named[] = {{call, 12},
                                   {call, kById, id.raw()},
                                   {call, kByEither, std::as_bytes(std::span(&either, 1))},
                                   {call, kInline, code}};
        for (const NamedCall& each : named) {
            const Frame frame = received(each);
            EXPECT_EQ(wrong_shape(frame, true, 0), "");
            EXPECT_EQ(context_of(frame), call);
        }
        EXPECT_EQ(named[0].header.handle, 12U);
        for (std::uint8_t naming = 0; naming < 4; ++naming) EXPECT_EQ(naming_of(named[naming].header), naming);
    }
}

TEST(CallContext, IsThatOfAllFramesThatAreAnsweredAsACallIs) {
    for (const Kind kind : {Kind::batch, Kind::ping}) {
        const Frame frame{header_of(kCall, kind), {}, {}};
        EXPECT_EQ(frame.header.kind, kind);
        EXPECT_EQ(wrong_shape(frame, true, 0), "");
        EXPECT_EQ(context_of(frame), kCall);
    }
}

TEST(CallContext, OfACallThatIsSentOnCountsTheHops) {
    CallContext expected = kCall;
    ++expected.hops;
    const std::optional<CallContext> on = sent_on(kCall);
    EXPECT_EQ(on, expected);
    CallContext last = kCall;
    last.hops = kHopsMax - 1;
    ASSERT_TRUE(sent_on(last));
    EXPECT_FALSE(sent_on(*sent_on(last)));
}

TEST(CallContext, OfACallThatAFunctionMakesHasItsOwnCallerAndHops) {
    EXPECT_EQ(made_within(kCall, true), CallContext{});
    EXPECT_EQ(made_within(CallContext{.hops = kHopsMax}, false), CallContext{.wants_reply = false});
}

}  // namespace
}  // namespace rove::wire
