// The shapes of frames of each kind, compared with a list of the test's own: all others are refused.
#include "wire/kinds.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace rove::wire {
namespace {

std::span<const std::byte> of(const ByteBuffer& bytes, std::size_t size) {
    return Bytes(bytes).first(size);
}

// As an honest peer writes it.
struct Honest {
    Kind kind;
    bool calls, prompt;
    unsigned flags;  // that it may have, whatever else it has
    std::size_t extra, payload_max;
    unsigned always = 0;  // flags that it cannot do without
};
const std::vector<Honest>& honest() {
    static const std::vector<Honest> all{
        {Kind::call, true, false, kNoReply, 0, kPayloadBytesMax},
        {Kind::reply, false, true, kError | kParts | kThrown, 0, kPayloadBytesMax},
        {Kind::bind, false, true, kMeant, 16, 0},
        {Kind::code, true, true, 0, 48, kFrameBytesMax},
        {Kind::need, false, true, 0, 64, 0},
        {Kind::lack, false, true, 0, 64, 0},
        {Kind::load, false, true, 0, 32, 0},
        {Kind::batch, true, false, 0, 0, kFrameBytesMax, kNoReply},
        {Kind::ping, true, false, kNoReply, 0, kPayloadBytesMax},
    };
    return all;
}

class FrameShape : public testing::Test {
protected:
    // Whether it is taken.
    bool fits(Kind kind, bool among_calls, unsigned flags, std::size_t extra, std::size_t payload) {
        const bool is_error = kind == Kind::reply && (flags & kError) != 0;
        const FrameHeader header{
            .kind = kind, .flags = static_cast<std::uint8_t>(flags), .status = static_cast<std::uint8_t>(is_error)};
        return wrong_shape({header, of(extra_, extra), of(payload_, payload)}, among_calls, kFeatures).empty();
    }
    ByteBuffer extra_ = ByteBuffer(1024), payload_ = ByteBuffer(2 * kFrameBytesMax);
};

TEST_F(FrameShape, EachKindComesByItsOwnRings) {
    for (const Honest& each : honest())
        for (const bool calls : {false, true})
            EXPECT_EQ(fits(each.kind, calls, each.always, each.extra, 0), calls ? each.calls : each.prompt)
                << static_cast<int>(each.kind) << calls;
}

TEST_F(FrameShape, EachKindHasItsOwnMarksOnly) {
    constexpr unsigned kNames = kNaming | kParts;  // of calls: below
    for (const Honest& each : honest())
        for (unsigned bit = 1; bit < 0x100; bit *= 2) {
            if (each.kind == Kind::call && (bit & kNames) != 0) continue;
            EXPECT_EQ(fits(each.kind, each.calls, each.always | bit, each.extra, 0),
                      ((each.flags | each.always) & bit) != 0)
                << static_cast<int>(each.kind) << " with " << bit;
        }
    EXPECT_FALSE(fits(Kind::batch, true, 0, 0, 16)) << "a batch wants no replies";
}

TEST_F(FrameShape, ExtensionsAreOfTheirSizeAndPayloadsWithinTheirs) {
    for (const Honest& each : honest()) {
        const auto fits_with = [&](std::size_t extra, std::size_t payload) {
            return fits(each.kind, each.calls, each.always, extra, payload);
        };
        EXPECT_TRUE(fits_with(each.extra, each.payload_max));
        EXPECT_FALSE(fits_with(each.extra, each.payload_max + 1)) << static_cast<int>(each.kind);
        EXPECT_FALSE(fits_with(each.extra + 16, 0)) << static_cast<int>(each.kind);
        if (each.extra > 0) EXPECT_FALSE(fits_with(each.extra - 16, 0)) << static_cast<int>(each.kind);
    }
}

TEST_F(FrameShape, CallsAreNamedInOneWay) {
    const InlineCode code{.manifest_bytes = 100, .slice = 0, .slice_bytes = 50};
    std::memcpy(extra_.data() + sizeof(FunctionId), &code, sizeof code);
    const auto fits_as = [&](unsigned flags, std::size_t extra) { return fits(Kind::call, true, flags, extra, 8); };
    const std::size_t whole = inline_extension_bytes(code);
    for (const std::size_t extra : {std::size_t{0}, std::size_t{16}, std::size_t{32}, std::size_t{48}, whole}) {
        EXPECT_EQ(fits_as(kByHandle, extra), extra == 0);
        EXPECT_EQ(fits_as(kById, extra), extra == 16);
        EXPECT_EQ(fits_as(kByEither, extra), extra == 48);
        EXPECT_EQ(fits_as(kInline, extra), extra == whole);
    }
    EXPECT_FALSE(fits_as(kInline, whole - 16)) << "with half its code";
    EXPECT_TRUE(fits(Kind::call, true, kInline, whole, sizeof(Staged)));
    EXPECT_FALSE(fits(Kind::call, true, kInline | kParts, whole, sizeof(Staged)))
        << "code goes with a payload that is whole";
    EXPECT_TRUE(fits(Kind::call, true, kById | kParts, sizeof(FunctionId), sizeof(Staged)));
    EXPECT_TRUE(fits(Kind::call, true, kByEither | kParts, sizeof(Either), sizeof(Staged)));
    EXPECT_TRUE(fits(Kind::call, true, kParts, 0, sizeof(Staged)));
    EXPECT_FALSE(fits(Kind::call, true, kParts, 0, sizeof(Staged) - 1));
    EXPECT_FALSE(fits(Kind::call, true, kParts, 0, sizeof(Staged) + 1));
}

TEST_F(FrameShape, AReplyInPartsHasNoPayload) {
    EXPECT_TRUE(fits(Kind::reply, false, kParts, 0, 0));
    EXPECT_FALSE(fits(Kind::reply, false, kParts, 0, 1));
}

TEST_F(FrameShape, PartsHaveBytesOrTakeThemBack) {
    const auto part_of = [&](std::uint32_t total, std::size_t payload, bool calls) {
        const Part part{.number = 1, .total_bytes = total};
        std::memcpy(extra_.data(), &part, sizeof part);
        return fits(Kind::part, calls, 0, sizeof part, payload);
    };
    EXPECT_TRUE(part_of(100, 1, true));
    EXPECT_TRUE(part_of(kPartBytesMax, kPartBytesMax, true));
    EXPECT_FALSE(part_of(2 * kPartBytesMax, kPartBytesMax + 1, true));
    EXPECT_FALSE(part_of(100, 0, true));
    EXPECT_TRUE(part_of(0, 0, true)) << "what has come is taken back";
    EXPECT_FALSE(part_of(0, 1, true));
    EXPECT_TRUE(part_of(100, 1, false));
    EXPECT_FALSE(part_of(0, 0, false)) << "no result is taken back";
}

TEST_F(FrameShape, PartsAreWithinTheWhole) {
    const auto is_whole = [](std::uint32_t offset, std::uint32_t total, std::size_t bytes) {
        return wrong_part({.offset = offset, .total_bytes = total}, bytes, true).empty();
    };
    EXPECT_TRUE(is_whole(kMessageBytesMax - 1, kMessageBytesMax, 1));
    EXPECT_FALSE(is_whole(0, kMessageBytesMax + 1, 1));
    EXPECT_FALSE(is_whole(90, 100, 11));
    EXPECT_FALSE(is_whole(101, 100, 1));
    EXPECT_FALSE(is_whole(~0U, 100, 101)) << "the sum wraps around";
}

TEST_F(FrameShape, ARepliesStatusIsAFormOrAnError) {
    for (unsigned status = 0; status < 256; ++status) {
        FrameHeader header{.kind = Kind::reply, .status = static_cast<std::uint8_t>(status)};
        EXPECT_EQ(wrong_shape({header, {}, {}}, false, 0).empty(), status <= 2) << status;
        EXPECT_EQ(is_plain<Kind::reply>({header, {}, {}}, 0), status <= 2) << status;
        header.flags = kError;
        EXPECT_EQ(wrong_shape({header, {}, {}}, false, 0).empty(), status >= 1 && status <= 9) << status;
    }
}

TEST_F(FrameShape, ThereAreNoOtherKinds) {
    for (unsigned kind = 0; kind < 0x100; ++kind) {
        const bool known = kind > static_cast<unsigned>(Kind::filler) && kind <= kKindMax;
        if (known) continue;
        for (const bool calls : {false, true}) EXPECT_FALSE(fits(static_cast<Kind>(kind), calls, 0, 0, 0)) << kind;
    }
}

// ---- a row of a later version: a call may have a budget, at the end of its extension

constexpr std::uint8_t kBudget = 128;
constexpr std::uint32_t kBudgets = 1;  // the feature
constexpr std::array<KindRule, kKindRules.size()> kWithBudget = [] {
    std::array<KindRule, kKindRules.size()> rules = kKindRules;
    KindRule& call = rules[static_cast<std::size_t>(Kind::call)];
    call.flags |= kBudget;
    call.plain_flags |= kBudget;
    call.extension.added = {.flag = kBudget, .bytes = 16, .feature = kBudgets};
    return rules;
}();
constexpr const KindRule& kCallWithBudget = kWithBudget[static_cast<std::size_t>(Kind::call)];
static_assert(is_consistent(kCallWithBudget));

// A call's header as its sender writes it.
constexpr FrameHeader call_header(unsigned flags, std::size_t extra_bytes, std::size_t payload_bytes) {
    return {.body_bytes = static_cast<std::uint32_t>(extra_bytes + payload_bytes),
            .extra_bytes = static_cast<std::uint16_t>(extra_bytes),
            .kind = Kind::call,
            .flags = static_cast<std::uint8_t>(flags)};
}

constexpr bool is_plain_with_budget(unsigned flags, std::size_t extra_bytes, std::uint32_t features) {
    return is_plain<Kind::call, kWithBudget>({call_header(flags, extra_bytes, 8), {}, {}}, features);
}
static_assert(is_plain_with_budget(kBudget, 16, kBudgets) && is_plain_with_budget(kBudget | kNoReply, 16, kBudgets));
static_assert(is_plain_with_budget(0, 0, kBudgets) && is_plain_with_budget(0, 0, 0), "a call need not have one");
static_assert(!is_plain_with_budget(kBudget, 0, kBudgets) && !is_plain_with_budget(0, 16, kBudgets));
static_assert(!is_plain_with_budget(kBudget, 32, kBudgets));
static_assert(!is_plain_with_budget(kBudget, 16, 0), "nobody agreed on it");
static_assert(!is_plain_with_budget(kBudget | kById, 32, kBudgets), "a plain call names its function by handle");
static_assert(!is_plain<Kind::call>({call_header(kBudget, 16, 8), {}, {}}, kBudgets), "this version has none");

TEST(Budget, IsBeforeThePayloadOfAPlainCall) {
    const FrameHeader header = call_header(kBudget, 16, 8);
    ByteBuffer bytes(kHeaderBytes + header.body_bytes);
    std::memcpy(bytes.data(), &header, sizeof header);
    const Frame frame = frame_in(bytes);
    EXPECT_TRUE((is_plain<Kind::call, kWithBudget>(frame, kBudgets)));
    EXPECT_EQ(frame.extra.data(), bytes.data() + kHeaderBytes);
    EXPECT_EQ(frame.extra.size(), 16U);
    EXPECT_EQ(frame.payload.data(), bytes.data() + kHeaderBytes + 16);
    EXPECT_EQ(frame.payload.size(), 8U);
    EXPECT_EQ(wrong_shape(kCallWithBudget, frame, true, kBudgets), "");
    EXPECT_NE(wrong_shape(kCallWithBudget, frame, true, 0), "") << "nobody agreed on it";
    EXPECT_NE(wrong_shape(frame, true, kBudgets), "") << "this version has none";
}

TEST(Budget, IsAfterWhatNamesTheFunction) {
    const InlineCode code{.manifest_bytes = 100, .slice = 0, .slice_bytes = 50};
    ByteBuffer extra(1024);
    std::memcpy(extra.data() + sizeof(FunctionId), &code, sizeof code);
    const auto fits = [&](unsigned naming, std::size_t name_bytes, std::size_t budget_bytes) {
        const std::size_t bytes = name_bytes + budget_bytes;
        return wrong_shape(kCallWithBudget, {call_header(naming | kBudget, bytes, 0), of(extra, bytes), {}}, true,
                           kBudgets)
            .empty();
    };
    for (const auto& [naming, bytes] : {std::pair<unsigned, std::size_t>{kByHandle, 0},
                                        {kById, sizeof(FunctionId)},
                                        {kByEither, sizeof(Either)},
                                        {kInline, inline_extension_bytes(code)}}) {
        EXPECT_TRUE(fits(naming, bytes, 16)) << naming;
        EXPECT_FALSE(fits(naming, bytes, 0)) << naming;
        EXPECT_FALSE(fits(naming, bytes, 32)) << naming;
    }
}

// ---- a row of a later version: a kind that both ends must have agreed on

TEST(KindWithAFeature, IsRefusedWhereNobodyAgreedOnIt) {
    static constexpr std::array<KindRule, kKindRules.size()> kRules = [] {
        std::array<KindRule, kKindRules.size()> rules = kKindRules;
        rules[static_cast<std::size_t>(Kind::ping)].feature = 2;
        return rules;
    }();
    const Frame ping{{.kind = Kind::ping}, {}, {}};
    const KindRule& rule = kRules[static_cast<std::size_t>(Kind::ping)];
    EXPECT_EQ(wrong_shape(rule, ping, true, 2 | 1), "");
    EXPECT_NE(wrong_shape(rule, ping, true, 1), "");
    EXPECT_TRUE((is_plain<Kind::ping, kRules>(ping, 2 | 1)));
    EXPECT_FALSE((is_plain<Kind::ping, kRules>(ping, 1)));
}

// ---- the page

std::string_view named_in(Names names) {
    switch (names) {
        case Names::anybody: return "anybody";
        case Names::caller: return "caller";
        case Names::sender: return "sender";
        case Names::receiver: return "receiver";
    }
    return {};
}

std::string_view named_in(Routed routed) {
    switch (routed) {
        case Routed::no: return "no";
        case Routed::to_caller: return "to the caller";
        case Routed::as_question: return "as a question";
        case Routed::as_answer: return "as an answer";
    }
    return {};
}

std::string bits_of(unsigned flags) {
    std::string bits;
    for (unsigned bit = 1; bit < 0x100; bit *= 2)
        if ((flags & bit) != 0) bits += (bits.empty() ? "" : ", ") + std::to_string(bit);
    return bits;
}

std::string flags_of(const KindRule& rule) {
    std::string flags = bits_of(rule.flags);
    if (rule.flags_always != 0) flags += "; always " + bits_of(rule.flags_always);
    if (rule.flags_apart != 0) flags += "; never at once " + bits_of(rule.flags_apart);
    return flags;
}

std::string bytes_of(const Extension& extension) {
    std::string bytes = std::to_string(extension.bytes);
    for (const std::size_t more : extension.by_naming)
        if (more == kAsItSays)
            bytes += ", as it says";
        else if (more != 0)
            bytes += ", " + std::to_string(more);
    const auto& added = extension.added;
    if (added.flag != 0) bytes += "; with " + bits_of(added.flag) + " " + std::to_string(added.bytes) + " more";
    return bytes;
}

// As the table of docs/frames.md has it.
std::string row_of(const KindRule& rule) {
    const std::string rings = rule.among_calls && rule.among_prompt ? "both" : rule.among_calls ? "calls" : "prompt";
    std::string row = "|";
    for (const std::string& cell :
         {std::to_string(static_cast<unsigned>(rule.kind)) + " " + std::string(rule.name), rings,
          std::string(named_in(rule.names)), std::string(named_in(rule.routed)), flags_of(rule),
          std::string(rule.extension.holds), bytes_of(rule.extension), std::to_string(rule.payload_bytes_max)})
        row += " " + cell + (cell.empty() ? "|" : " |");
    return row + "\n";
}

TEST(KindRules, AreThoseOfThePage) {
    const char* const tree = std::getenv("ROVE_SOURCE_DIR");
    ASSERT_NE(tree, nullptr);
    std::ifstream stream(std::string(tree) + "/docs/frames.md");
    const std::string page((std::istreambuf_iterator<char>(stream)), {});
    std::string rows;
    for (const KindRule& rule : kKindRules)
        if (rule.kind > Kind::filler) rows += row_of(rule);
    EXPECT_NE(page.find("| --- |\n" + rows + "\n"), std::string::npos) << "docs/frames.md lacks\n" << rows;
}

}  // namespace
}  // namespace rove::wire
