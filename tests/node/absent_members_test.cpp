// Replies for callers whose node is not reached at the moment.
#include "peer/absent_members.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <span>

namespace rove::test {
namespace {

using wire::Kind;

constexpr TimePoint kNow{std::chrono::hours(1)};

AbsentMembers::Process process(std::uint8_t number) {
    AbsentMembers::Process process;
    process.bytes.fill(number);
    return process;
}
wire::FrameHeader header_of(const ByteBuffer& frame) {
    wire::FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof header);
    return header;
}
wire::FrameHeader reply(std::uint16_t call, std::uint8_t flags = 0) {
    return {.kind = Kind::reply, .flags = flags, .generation = 1, .node = 1, .call = call};
}

struct Orphan {
    Forwarded call;
    std::string why;
};
std::vector<Orphan> orphans_of(AbsentMembers& absent) {
    std::vector<Orphan> all;
    for (auto& orphans : absent.take_orphans())
        orphans.calls.take_all([&](const Forwarded& call) noexcept { all.push_back({call, orphans.why.message()}); });
    return all;
}

TEST(AbsentMembers, KeepRepliesForWhoHasTheIdNext) {
    AbsentMembers absent;
    (void)absent.keep(1, reply(1), {}, ByteBuffer(8), kNow);  // of whom nothing is known
    absent.lost(1, process(1), "cut");
    (void)absent.keep(1, reply(2), {}, ByteBuffer(8), kNow);
    EXPECT_EQ(*absent.why(1), "cut");
    EXPECT_GT(absent.kept_bytes(), 0U);
    const auto frames = absent.met(1, process(1)).frames;
    ASSERT_EQ(frames.size(), 1U);
    EXPECT_EQ(header_of(frames[0]).call, 2);
    EXPECT_EQ(header_of(frames[0]).body_bytes, 8U);
    EXPECT_EQ(absent.kept_bytes(), 0U);

    absent.lost(1, process(1), "cut");
    (void)absent.keep(1, reply(3), {}, ByteBuffer(8), kNow);
    EXPECT_EQ(absent.met(1, process(2)).frames.size(), 1U) << "another process took its place, and may have called";
    EXPECT_EQ(absent.kept_bytes(), 0U);
}

// Another process may take its place, and call through others before this node has heard of it.
TEST(AbsentMembers, KeepRepliesForAWhileWhereAProcessHasGone) {
    AbsentMembers absent;
    absent.lost(1, process(1), "cut");
    (void)absent.keep(1, reply(1), {}, ByteBuffer(8), kNow);
    EXPECT_FALSE(absent.drop_due()) << "it is met again, some day";
    absent.gone(1, "it left", kNow);
    absent.lost(1, process(1), "cut");  // its link's end is noticed after that
    const TimePoint later = kNow + kKeptForNextMax / 2;
    (void)absent.keep(1, reply(2, wire::kError), {}, ByteBuffer(8), later);
    EXPECT_FALSE(absent.drop_old(kNow + kKeptForNextMax));
    EXPECT_EQ(absent.kept_bytes(), 0U) << "what comes later does not keep what is old";
    EXPECT_EQ(absent.kept_errors(), 1U);
    absent.expected(1, process(2), "not met yet");  // another one is told of
    (void)absent.keep(1, reply(3), {}, ByteBuffer(8), later);
    EXPECT_FALSE(absent.drop_old(later + kKeptForNextMax));
    EXPECT_EQ(absent.met(1, process(2)).frames.size(), 2U);

    absent.gone(1, "it left", kNow);
    EXPECT_FALSE(absent.drop_due());
    (void)absent.keep(1, reply(4), {}, ByteBuffer(8), later);
    (void)absent.keep(1, reply(5, wire::kError), {}, ByteBuffer(8), later);
    EXPECT_EQ(absent.drop_due(), later + kKeptForNextMax);
    EXPECT_FALSE(absent.drop_old(*absent.drop_due()));
    EXPECT_EQ(absent.kept_bytes() + absent.kept_errors(), 0U);
    EXPECT_TRUE(absent.met(1, process(3)).frames.empty());
}

TEST(AbsentMembers, ReplaceWhatIsTooMuchByErrors) {
    AbsentMembers absent;
    absent.lost(1, process(1), "cut");
    const ByteBuffer large(wire::kPayloadBytesMax);
    const auto count = static_cast<std::uint16_t>(kKeptBytesMax / large.size() + 10);
    for (std::uint16_t call = 0; call < count; ++call) (void)absent.keep(1, reply(call), {}, large, kNow);
    EXPECT_LE(absent.kept_bytes(), kKeptBytesMax);
    EXPECT_GT(absent.kept_errors(), 0U);
    const auto fail_call_of = [&](NodeId member) {
        return absent.keep(member, reply(0, wire::kError), {}, as_bytes(std::string_view("it failed")), kNow);
    };
    for (std::size_t i = 0; i < 2 * kKeptErrorsMax; ++i) (void)fail_call_of(1);
    EXPECT_EQ(absent.kept_errors(), kKeptErrorsOfMemberMax) << "others have theirs";
    EXPECT_EQ(fail_call_of(1), AbsentMembers::Kept::full);
    for (NodeId other = 2; other < 20; ++other) {
        absent.lost(other, process(1), "cut");
        for (std::size_t i = 0; i < kKeptErrorsOfMemberMax; ++i) (void)fail_call_of(other);
        EXPECT_LE(absent.kept_errors(), kKeptErrorsMax);
        for (std::uint16_t call = 0; call < count; ++call) (void)absent.keep(other, reply(call), {}, large, kNow);
    }
    EXPECT_LE(absent.kept_bytes(), kKeptBytesOfAllMax);
    const auto frames = absent.met(1, process(1)).frames;
    const wire::FrameHeader replaced = header_of(frames[count - 1]);
    EXPECT_EQ(replaced.flags, wire::kError);
    EXPECT_EQ(replaced.call, count - 1);
    EXPECT_EQ(static_cast<ErrorCode>(replaced.status), ErrorCode::disconnected);
}

TEST(AbsentMembers, CountWhatSmallFramesTake) {
    AbsentMembers absent;
    absent.lost(1, process(1), "cut");
    constexpr std::size_t kCalls = 60'000;
    for (std::size_t call = 0; call < kCalls; ++call)
        (void)absent.keep(1, reply(static_cast<std::uint16_t>(call)), {}, ByteBuffer(1), kNow);
    EXPECT_GE(absent.kept_bytes(), (kCalls - absent.kept_errors()) * (wire::kHeaderBytes + kKeptFrameBytes));
    EXPECT_LE(absent.kept_bytes(), kKeptBytesMax);
}

// There may be as many as fit, and nobody's calls wait for that.
TEST(AbsentMembers, DropInSteps) {
    AbsentMembers absent;
    absent.gone(1, "it left", kNow);
    for (std::size_t call = 0; call < 3 * kKeptDropMax; ++call)
        (void)absent.keep(1, reply(static_cast<std::uint16_t>(call)), {}, ByteBuffer(1), kNow);
    const std::size_t before = absent.kept_bytes();
    const TimePoint due = *absent.drop_due();
    EXPECT_TRUE(absent.drop_old(due));
    EXPECT_EQ(absent.kept_bytes(), before / 3 * 2);
    EXPECT_EQ(absent.drop_due(), due);
    (void)absent.keep(1, reply(1), {}, ByteBuffer(1), due);
    EXPECT_EQ(absent.met(1, process(2)).frames.size(), 1U) << "old ones are of no use, dropped or not";
    EXPECT_EQ(absent.kept_bytes(), 0U);
}

TEST(AbsentMembers, KeepTheWordsOfErrors) {
    AbsentMembers absent;
    absent.lost(1, process(1), "cut");
    const auto kept = [&](const std::string& text) {
        (void)absent.keep(1, reply(1, wire::kError | wire::kThrown), {}, as_bytes(std::string_view(text)), kNow);
        const ByteBuffer frame = absent.met(1, process(1)).frames.front();
        absent.lost(1, process(1), "cut");
        const auto* words = reinterpret_cast<const char*>(frame.data()) + wire::kHeaderBytes;
        return std::pair(header_of(frame).flags, std::string(words, frame.size() - wire::kHeaderBytes));
    };
    const std::string with_type = std::string("E") + '\0' + "disk 7 is full";
    EXPECT_EQ(kept(with_type), std::pair(std::uint8_t{wire::kError | wire::kThrown}, with_type));
    EXPECT_EQ(kept(std::string(200, 'E') + '\0' + "disk 7 is full"),
              std::pair(std::uint8_t{wire::kError}, std::string("disk 7 is full")))
        << "the message says more than the type";
    EXPECT_EQ(kept(std::string("E") + '\0' + std::string(10'000, 'x')).second.size(), kKeptErrorTextMax);
    EXPECT_EQ(kept(std::string(10'000, 'E')).second.size(), kKeptErrorTextMax);
}

TEST(AbsentMembers, KeepResultsInPartsWholeOrNotAtAll) {
    AbsentMembers absent;
    absent.lost(1, process(1), "cut");
    const auto part = [&](std::uint16_t call, std::uint32_t offset) {
        wire::FrameHeader header = reply(call);
        header.kind = Kind::part;
        const wire::Part part{.offset = offset, .total_bytes = 20};
        (void)absent.keep(1, header, std::as_bytes(std::span(&part, 1)), ByteBuffer(10), kNow);
    };
    part(1, 0);
    part(1, 10);
    (void)absent.keep(1, reply(1, wire::kParts), {}, {}, kNow);
    part(2, 10);  // the one before it was lost with the link
    (void)absent.keep(1, reply(2, wire::kParts), {}, {}, kNow);
    const auto frames = absent.met(1, process(1)).frames;
    ASSERT_EQ(frames.size(), 4U);
    EXPECT_EQ(header_of(frames[2]).flags, wire::kParts);
    EXPECT_EQ(header_of(frames[3]).flags, wire::kError);
}

ByteBuffer first_part() {
    const wire::Part part{.offset = 0, .total_bytes = 100};
    const Bytes bytes = std::as_bytes(std::span(&part, 1));
    return {bytes.begin(), bytes.end()};
}
wire::FrameHeader part_of(std::uint32_t generation) {
    return {.kind = Kind::part, .generation = generation, .node = 1, .call = 1};
}

// A member that sends nothing but first parts takes no more than what is kept of them.
TEST(AbsentMembers, ForgetResultsWhoseKeptPartsWereDropped) {
    AbsentMembers absent;
    absent.lost(1, process(1), "cut");
    absent.gone(1, "ended", kNow);
    TimePoint now = kNow + kKeptForNextMax;
    for (std::uint32_t i = 1; i <= 100; ++i, now += std::chrono::seconds(1)) {
        (void)absent.keep(1, part_of(i), first_part(), ByteBuffer(8), now);
        (void)absent.drop_old(now);
        EXPECT_LE(absent.begun_results(), static_cast<std::size_t>(kKeptForNextMax.count()) + 1) << i;
    }
    EXPECT_GT(absent.begun_results(), 1U);
}

// Otherwise a member would keep everybody waiting. The limit is far from what it takes.
TEST(AbsentMembers, FindThePartsOfADroppedResultAmongMany) {
    AbsentMembers absent;
    absent.lost(1, process(1), "cut");
    for (std::uint16_t call = 2; call < 50'000; ++call) (void)absent.keep(1, reply(call), {}, {}, kNow);
    const std::size_t kept = absent.kept_bytes();
    const auto begun = std::chrono::steady_clock::now();
    for (std::uint32_t i = 0; i < 200'000; ++i) {
        (void)absent.keep(1, part_of(1), first_part(), ByteBuffer(8), kNow);
        EXPECT_EQ(absent.begun_results(), 1 - i % 2) << "a second first part is out of order";
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
    EXPECT_EQ(absent.kept_bytes(), kept);
}

TEST(AbsentMembers, SayWhichCallsWentWithAProcess) {
    AbsentMembers absent;
    const auto calls = [](std::uint16_t first) {
        SentOn calls;
        for (const Forwarded& each : {Forwarded{.position = 0, .origin = 7, .call = first, .generation = 1},
                                      Forwarded{.position = 0, .origin = 7, .call = 9, .generation = 2}})
            calls.add(each, true);
        return calls;
    };
    const auto lost = [&](std::uint8_t number, const char* why, std::uint16_t first) {
        SentOn taken = calls(first);
        absent.lost(1, process(number), why);
        absent.had_taken(1, taken);
        EXPECT_TRUE(taken.empty());
    };
    lost(1, "cut", 1);
    EXPECT_TRUE(orphans_of(absent).empty()) << "it may answer them yet";
    EXPECT_EQ(absent.met(1, process(1)).sent_on.size(), 2U);
    EXPECT_TRUE(orphans_of(absent).empty());

    lost(1, "cut", 2);
    absent.gone(1, "it left", kNow);
    auto orphans = orphans_of(absent);
    ASSERT_EQ(orphans.size(), 2U);
    if (orphans[0].call.call != 2) std::swap(orphans[0], orphans[1]);
    EXPECT_EQ(orphans[0].call.call, 2);
    EXPECT_EQ(orphans[1].call.generation, 2U);
    EXPECT_EQ(orphans[0].why, "cut; the call had been sent on there, and may have run");
    EXPECT_TRUE(orphans_of(absent).empty()) << "each is named once";

    lost(1, "its end was seen after that", 3);
    EXPECT_EQ(orphans_of(absent).size(), 2U);

    absent.expected(1, process(2), "not met yet");
    lost(2, "cut", 4);
    EXPECT_TRUE(absent.met(1, process(3)).sent_on.empty());
    EXPECT_EQ(orphans_of(absent).size(), 2U) << "another process took its place";
}

TEST(AbsentMembers, SayOfWhomNothingIsKnown) {
    AbsentMembers absent;
    EXPECT_EQ(absent.keep(1, reply(1), {}, ByteBuffer(8), kNow), AbsentMembers::Kept::unknown);
    absent.expected(1, process(1), "not met yet");
    EXPECT_EQ(absent.keep(1, reply(1), {}, ByteBuffer(8), kNow), AbsentMembers::Kept::yes);
    absent.gone(1, "nobody listens there", kNow);
    EXPECT_EQ(absent.keep(1, reply(1), {}, ByteBuffer(8), kNow), AbsentMembers::Kept::yes);
}

}  // namespace
}  // namespace rove::test
