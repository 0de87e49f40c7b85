// The rules of each kind of frame, one row per kind: its shape, its senders, its way and its purpose. All checks of a frame derive from this
// table: that of its shape here, that of its sender in src/peer/frame_checks.cpp. So does is_plain, which recognises the shape of nearly all
// frames and lets them skip these checks. docs/frames.md has the same table, which a test compares with this one.
//
// The handlers of a kind are in src/engine/dispatcher.cpp: AmongCalls and AmongPrompt have one for each row that may arrive there, and for no
// other, which the compiler checks.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "rove/forms.hpp"
#include "wire/frame.hpp"

namespace rove::wire {

// The features of this build: what it can do beyond the version of its protocol (control.hpp), one bit each, none yet. Two nodes tell each
// other theirs when they meet (docs/meeting.md), and use those that both have.
inline constexpr std::uint32_t kFeatures = 0;

// The nodes that the header's `node` may name. A member may name others as well, because it forwards their calls and the answers to these.
enum class Names : std::uint8_t {
    anybody,  // a destination, to which the receiver passes it on, or none
    caller,   // the node that made the call: its sender, or another one for which a member passes it on
    sender,   // its sender only
    // In the prompt ring: the destination, which is the receiver, or another one to which a member forwards it.
    receiver,
};

// The way of a frame whose `node` is another than its receiver.
enum class Routed : std::uint8_t {
    no,           // none: it concerns its sender and its receiver
    to_caller,    // in the prompt ring: to the node that made the call; kept for a member that cannot be reached
    as_question,  // to the node that it names; if that has no answer, to the node that made the call
    as_answer,    // back to the peer that has passed on the question
};

// The meaning of the header's `hops`.
enum class Hops : std::uint8_t {
    unused,
    counted,    // how many times the call was forwarded
    passed_on,  // 1: its sender, a member, passes it on for another
};

// The size of an extension that states its own size: see extension_bytes().
inline constexpr std::size_t kAsItSays = ~std::size_t{0};

// The extension of the frames of a kind. Its bytes are a multiple of 16.
struct Extension {
    std::string_view holds = "";             // the struct in frame.hpp, or what decides which one it is
    std::size_t bytes = 0;                   // size that each frame has
    std::array<std::size_t, 4> by_naming{};  // added for a call, for each way in which it names its function
    // Added at the end, in a frame with the flag: what both ends must have agreed on (kFeatures).
    struct {
        std::uint8_t flag = 0;  // 0: there is none
        std::size_t bytes = 0;
        std::uint32_t feature = 0;
    } added{};
};

struct KindRule {
    Kind kind = Kind::none;
    std::string_view name = "";
    bool among_calls = false, among_prompt = false;  // the rings in which it may arrive
    Names names = Names::anybody;
    Routed routed = Routed::no;
    std::uint8_t flags = 0;         // flags that it may have
    std::uint8_t plain_flags = 0;   // those of them that a plain frame may have
    std::uint8_t flags_always = 0;  // those of them that it must have
    std::uint8_t flags_apart = 0;   // those of them that it never has together
    Extension extension{};
    std::size_t payload_bytes_max = 0;
    std::optional<std::size_t> payload_bytes_in_parts{};  // the exact size, with kParts
    Hops hops = Hops::unused;
    bool has_status = false;    // the form in which its function ran, or an error code
    bool brings_code = false;   // so does a call that carries its code: see brings_code()
    std::uint32_t feature = 0;  // that both ends must have agreed on, for any frame of the kind; 0: none
};

inline constexpr std::array<KindRule, kKindMax + 1> kKindRules{{
    {
        .kind = Kind::none,
        .name = "no frame",
    },
    {
        .kind = Kind::filler,  // the ring skips them
        .name = "a filler",
    },
    {
        .kind = Kind::call,
        .name = "a call",
        .among_calls = true,
        .names = Names::caller,
        .flags = kNaming | kNoReply | kParts,
        .plain_flags = kNoReply,
        // A call that is too large for a frame names its function: otherwise it would be undefined whether its code is taken before its
        // payload.
        .flags_apart = kInline | kParts,
        .extension = {.holds = "as it names its function",
                      .by_naming = {0, sizeof(FunctionId), sizeof(Either), kAsItSays}},
        .payload_bytes_max = kPayloadBytesMax,
        .payload_bytes_in_parts = sizeof(Staged),
        .hops = Hops::counted,
    },
    {
        .kind = Kind::reply,
        .name = "a reply",
        .among_prompt = true,
        .names = Names::receiver,
        .routed = Routed::to_caller,
        .flags = kError | kParts | kThrown,
        .payload_bytes_max = kPayloadBytesMax,
        .payload_bytes_in_parts = 0,
        .hops = Hops::counted,
        .has_status = true,
    },
    {
        .kind = Kind::bind,
        .name = "a bind",
        .among_prompt = true,
        .flags = kMeant,
        .extension = {.holds = "FunctionId", .bytes = sizeof(FunctionId)},
    },
    {
        .kind = Kind::code,
        .name = "a piece of code",
        .among_calls = true,
        .among_prompt = true,
        .routed = Routed::as_answer,
        .extension = {.holds = "CodeChunk", .bytes = sizeof(CodeChunk)},
        .payload_bytes_max = kFrameBytesMax,
        .hops = Hops::passed_on,
        .brings_code = true,
    },
    {
        .kind = Kind::need,
        .name = "a question for code",
        .among_prompt = true,
        .routed = Routed::as_question,
        .extension = {.holds = "NeedCode", .bytes = sizeof(NeedCode)},
    },
    {
        .kind = Kind::lack,
        .name = "an answer that code is lacking",
        .among_prompt = true,
        .routed = Routed::as_answer,
        .extension = {.holds = "NeedCode", .bytes = sizeof(NeedCode)},
    },
    {
        .kind = Kind::load,
        .name = "a package to load",
        .among_prompt = true,
        .names = Names::sender,
        .extension = {.holds = "LoadPackage", .bytes = sizeof(LoadPackage)},
        .brings_code = true,
    },
    {
        .kind = Kind::batch,
        .name = "a batch",
        .among_calls = true,
        .names = Names::caller,
        .flags = kNoReply,
        .plain_flags = kNoReply,
        .flags_always = kNoReply,
        .payload_bytes_max = kFrameBytesMax,
        .hops = Hops::counted,
    },
    {
        .kind = Kind::ping,
        .name = "a ping",
        .among_calls = true,
        .names = Names::caller,
        .flags = kNoReply,
        .plain_flags = kNoReply,
        .payload_bytes_max = kPayloadBytesMax,
        .hops = Hops::counted,
    },
    {
        .kind = Kind::part,
        .name = "a part",
        .among_calls = true,
        .among_prompt = true,
        .names = Names::receiver,
        .routed = Routed::to_caller,  // for a result; a payload is for the receiver
        .extension = {.holds = "Part", .bytes = sizeof(Part)},
        .payload_bytes_max = kPartBytesMax,
    },
}};

// Whether the columns of a row agree with one another. A plain frame names its function by handle, and has its payload with it.
[[nodiscard]] constexpr bool is_consistent(const KindRule& rule) {
    const auto& added = rule.extension.added;
    const auto is_whole = [](std::size_t bytes) { return bytes % 16 == 0; };
    return ((rule.plain_flags | rule.flags_always | rule.flags_apart | added.flag) & ~rule.flags) == 0 &&
           (rule.plain_flags & (kNaming | kParts)) == 0 && rule.extension.by_naming[kByHandle] == 0 &&
           is_whole(rule.extension.bytes) && is_whole(added.bytes) && (added.flag != 0) == (added.bytes != 0) &&
           (added.flag != 0) == (added.feature != 0);
}

static_assert([] {
    for (std::size_t i = 0; i < kKindRules.size(); ++i)
        if (kKindRules[i].kind != static_cast<Kind>(i) || !is_consistent(kKindRules[i])) return false;
    return true;
}());

// Precondition: `kind` is a kind.
[[nodiscard]] constexpr const KindRule& rule_of(Kind kind) {
    return kKindRules[static_cast<std::size_t>(kind)];
}

// Whether the frame ends a call, or is a part of a frame that will.
[[nodiscard]] constexpr bool is_answer(Kind kind) {
    return rule_of(kind).routed == Routed::to_caller;
}

// Whether the frame contains code, which only nodes accept, not clients.
[[nodiscard]] constexpr bool brings_code(const FrameHeader& header) {
    return rule_of(header.kind).brings_code || (header.kind == Kind::call && naming_of(header) == kInline);
}

// Whether its flags are a plain frame's: a plain call names its function by handle, and has its payload with it; a plain reply is a result.
[[nodiscard]] constexpr bool has_plain_flags(const KindRule& rule, const FrameHeader& header) {
    return (header.flags & ~rule.plain_flags) == 0;
}

// Whether a status is a form in which a function can have run, or an error's a known code. Kinds without a status may have any number.
[[nodiscard]] constexpr bool has_known_status(const KindRule& rule, const FrameHeader& header) {
    if (!rule.has_status) return true;
    if ((header.flags & kError) == 0) return header.status <= static_cast<std::uint8_t>(RanAs::bitcode);
    return header.status != 0 && header.status <= static_cast<std::uint8_t>(ErrorCode::internal);
}

// `features`: those that both ends have.
[[nodiscard]] constexpr bool is_agreed(const KindRule& rule, const FrameHeader& header, std::uint32_t features) {
    const auto& added = rule.extension.added;
    return (rule.feature == 0 || (features & rule.feature) != 0) &&
           ((header.flags & added.flag) == 0 || (features & added.feature) != 0);
}

[[nodiscard]] constexpr std::size_t added_bytes(const KindRule& rule, const FrameHeader& header) {
    const auto& added = rule.extension.added;
    return (header.flags & added.flag) != 0 ? added.bytes : 0;
}

// The part of the extension of a call that names its function, without what is added to it. The call has passed wrong_shape().
[[nodiscard]] constexpr Bytes name_in(const Frame& call) {
    return call.extra.first(call.extra.size() - added_bytes(rule_of(Kind::call), call.header));
}

// Whether the frame is of that kind, with a shape that needs no further check. `features`: those that both ends have. `kRules`: for tests.
template <Kind kKind, const auto& kRules = kKindRules>
[[nodiscard]] constexpr bool is_plain(const Frame& frame, [[maybe_unused]] std::uint32_t features) {
    constexpr const KindRule& kRule = kRules[static_cast<std::size_t>(kKind)];
    static_assert(kRule.flags_always == 0, "nothing here looks for them");
    const FrameHeader& header = frame.header;
    std::uint16_t extra_bytes = kRule.extension.bytes;
    if constexpr (kRule.extension.added.flag != 0 ||
                  kRule.feature != 0) {  // so that a kind without it costs no instruction
        if (!is_agreed(kRule, header, features)) return false;
        extra_bytes = static_cast<std::uint16_t>(extra_bytes + added_bytes(kRule, header));
    }
    return header.kind == kKind && header.extra_bytes == extra_bytes && has_plain_flags(kRule, header) &&
           has_known_status(kRule, header) && frame.payload.size() <= kRule.payload_bytes_max;
}

// The size of the extension that a frame announces. Nothing: it is too short to announce one.
[[nodiscard]] inline std::optional<std::size_t> extension_bytes(const KindRule& rule, const Frame& frame) {
    std::size_t bytes = rule.extension.by_naming[naming_of(frame.header)];
    if (bytes == kAsItSays) {
        if (frame.extra.size() < sizeof(FunctionId) + sizeof(InlineCode)) return std::nullopt;
        bytes = inline_extension_bytes(copy_of<InlineCode>(frame.extra.subspan(sizeof(FunctionId))));
    }
    return rule.extension.bytes + bytes + added_bytes(rule, frame.header);
}

// The error in a part of so many bytes; "" if there is none. A direct peer may change the extension after the frame was checked, so whoever
// uses a copy of it asks about that copy.
[[nodiscard]] inline std::string_view wrong_part(const Part& part, std::size_t bytes, bool among_calls) {
    if (part.total_bytes > kMessageBytesMax) return "of more bytes than a payload or a result may have";
    if (part.offset > part.total_bytes || bytes > part.total_bytes - part.offset)
        return "that reaches beyond the whole";
    // Among the calls one without bytes, with a total size of 0, withdraws a payload.
    if (bytes == 0 && !(among_calls && part.total_bytes == 0)) return "of nothing";
    return {};
}

// The error in the shape of a frame of the rule's kind; "" if there is none. `among_calls`: it arrived in the ring of calls.
[[nodiscard]] inline std::string_view wrong_shape(const KindRule& rule, const Frame& frame, bool among_calls,
                                                  std::uint32_t features) {
    const FrameHeader& header = frame.header;
    const auto has_all = [&header](unsigned flags) { return (header.flags & flags) == flags; };
    if (!(among_calls ? rule.among_calls : rule.among_prompt)) return "in the other kind of mailbox";
    if ((header.flags & ~rule.flags) != 0) return "with marks that are not its own";
    if (!has_all(rule.flags_always)) return "without a mark that it must have";
    if (rule.flags_apart != 0 && has_all(rule.flags_apart)) return "with marks that exclude one another";
    if (!is_agreed(rule, header, features)) return "with a feature that was not agreed on";
    if (!has_known_status(rule, header)) return "with a status that there is none of";
    const std::optional<std::size_t> extra = extension_bytes(rule, frame);
    if (!extra) return "with half its code";
    if (frame.extra.size() != *extra) return "with an extension of the wrong size";
    if (frame.payload.size() > rule.payload_bytes_max) return "with a payload over the limit";
    if (has_all(kParts) && rule.payload_bytes_in_parts && frame.payload.size() != *rule.payload_bytes_in_parts)
        return "that does not say which parts it is made of";
    if (rule.kind == Kind::part) return wrong_part(copy_of<Part>(frame.extra), frame.payload.size(), among_calls);
    return {};
}

// The same for a frame of any kind, or of an unknown one.
[[nodiscard]] inline std::string_view wrong_shape(const Frame& frame, bool among_calls, std::uint32_t features) {
    const auto index = static_cast<std::size_t>(frame.header.kind);
    if (index >= kKindRules.size()) return "of no known kind";
    return wrong_shape(kKindRules[index], frame, among_calls, features);
}

}  // namespace rove::wire
