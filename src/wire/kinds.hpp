// The rules of each kind of frame: its shape, its senders and its purpose, one row per kind. The checks of a frame derive from this table:
// that of its shape here, that of its sender in src/peer/frame_checks.cpp. So does is_plain, which recognises the shape of nearly all frames and
// lets them skip these checks.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "rove/forms.hpp"
#include "wire/frame.hpp"

namespace rove::wire {

// The nodes that the header's `node` may name. A member may name others as well, because it sends on their calls and the answers to these.
enum class Names : std::uint8_t {
    anybody,   // a destination, to which the receiver passes it on, or nobody
    caller,    // who made the call: its sender, or another one for whom a member speaks
    sender,    // its sender, and nobody else
    receiver,  // among the replies: whom it is for, which is the receiver, or another one to whom a member sends it on
};

struct KindRule {
    Kind kind;
    std::string_view name;
    Names names;
    bool among_calls, among_replies;  // the rings in which it may arrive
    std::uint8_t flags;               // that it may have
    std::uint8_t plain_flags;         // those of them with which it is plain
    bool is_answer;                   // it ends a call, or is a part of what will
    bool brings_code;                 // so does a call that carries its code: see brings_code()
    std::size_t extra_bytes;          // of its extension; a call's depends on its flags: see extension_bytes()
    std::size_t payload_bytes_max;
};

inline constexpr std::size_t kNoPayload = 0;
inline constexpr std::array<KindRule, kKindMax + 1> kKindRules{{
    {Kind::none, "no frame", Names::anybody, false, false, 0, 0, false, false, 0, kNoPayload},
    {Kind::filler, "a filler", Names::anybody, false, false, 0, 0, false, false, 0, kNoPayload},  // the ring skips them
    {Kind::call, "a call", Names::caller, true, false, kNaming | kNoReply | kParts, kNoReply, false, false, 0,
     kPayloadBytesMax},
    {Kind::reply, "a reply", Names::receiver, false, true, kError | kParts | kThrown, 0, true, false, 0,
     kPayloadBytesMax},
    {Kind::bind, "a bind", Names::anybody, false, true, kMeant, 0, false, false, sizeof(FunctionId), kNoPayload},
    {Kind::code, "a piece of code", Names::anybody, true, true, 0, 0, false, true, sizeof(CodeChunk), kFrameBytesMax},
    {Kind::need, "a question for code", Names::anybody, false, true, 0, 0, false, false, sizeof(NeedCode), kNoPayload},
    {Kind::lack, "an answer that code is lacking", Names::anybody, false, true, 0, 0, false, false, sizeof(NeedCode),
     kNoPayload},
    {Kind::load, "a package to load", Names::sender, false, true, 0, 0, false, true, sizeof(LoadPackage), kNoPayload},
    {Kind::batch, "a batch", Names::caller, true, false, kNoReply, kNoReply, false, false, 0, kFrameBytesMax},
    {Kind::ping, "a ping", Names::caller, true, false, kNoReply, kNoReply, false, false, 0, kPayloadBytesMax},
    {Kind::part, "a part", Names::receiver, true, true, 0, 0, true, false, sizeof(Part), kPartBytesMax},
}};

static_assert([] {
    for (std::size_t i = 0; i < kKindRules.size(); ++i)
        if (kKindRules[i].kind != static_cast<Kind>(i) || (kKindRules[i].plain_flags & ~kKindRules[i].flags) != 0)
            return false;
    return true;
}());

// Precondition: it is a kind.
[[nodiscard]] constexpr const KindRule& rule_of(Kind kind) {
    return kKindRules[static_cast<std::size_t>(kind)];
}

// Whether its marks are a plain frame's: a plain call names its function by handle, and has its payload with it; a plain reply is a result.
template <Kind kKind>
[[nodiscard]] constexpr bool has_plain_flags(const FrameHeader& header) {
    return (header.flags & ~rule_of(kKind).plain_flags) == 0;
}
// Whether a reply's status is a form in which a function can have run, or an error's a code that there is. Other kinds have none.
[[nodiscard]] constexpr bool has_known_status(const FrameHeader& header) {
    if (header.kind != Kind::reply) return true;
    if ((header.flags & kError) == 0) return header.status <= static_cast<std::uint8_t>(RanAs::bitcode);
    return header.status != 0 && header.status <= static_cast<std::uint8_t>(ErrorCode::internal);
}

// Whether the frame is of that kind, with a shape that needs no further check.
template <Kind kKind>
[[nodiscard]] constexpr bool is_plain(const Frame& frame) {
    static_assert(rule_of(kKind).extra_bytes == 0);
    const FrameHeader& header = frame.header;
    return header.kind == kKind && header.extra_bytes == 0 && has_plain_flags<kKind>(header) &&
           has_known_status(header) && frame.payload.size() <= rule_of(kKind).payload_bytes_max;
}

// Only nodes take code, and a client does not.
[[nodiscard]] constexpr bool brings_code(const FrameHeader& header) {
    return rule_of(header.kind).brings_code || (header.kind == Kind::call && naming_of(header) == kInline);
}

// The size of the extension that a call announces. Nothing: it is too short to announce one.
[[nodiscard]] inline std::optional<std::size_t> extension_bytes(const Frame& call) {
    switch (naming_of(call.header)) {
        case kByHandle: return 0;
        case kById: return sizeof(FunctionId);
        case kByEither: return sizeof(Either);
        default: {
            if (call.extra.size() < sizeof(FunctionId) + sizeof(InlineCode)) return std::nullopt;
            InlineCode code;
            std::memcpy(&code, call.extra.data() + sizeof(FunctionId), sizeof code);
            return inline_extension_bytes(code);
        }
    }
}

// The error in a frame's shape; "" if there is none. `among_calls`: it arrived in the ring of calls.
[[nodiscard]] inline std::string_view wrong_shape(const Frame& frame, bool among_calls) {
    const FrameHeader& header = frame.header;
    const auto index = static_cast<std::size_t>(header.kind);
    if (index >= kKindRules.size()) return "of no known kind";
    const KindRule& rule = kKindRules[index];
    if (!(among_calls ? rule.among_calls : rule.among_replies)) return "in the other kind of mailbox";
    if ((header.flags & ~rule.flags) != 0) return "with marks that are not its own";
    if (!has_known_status(header)) return "with a status that there is none of";
    if (header.kind == Kind::batch && (header.flags & kNoReply) == 0) return "that wants replies";
    // A call that is too large for a frame names its function: nobody would know whether its code is to be taken before its payload.
    if (header.kind == Kind::call && naming_of(header) == kInline && (header.flags & kParts) != 0)
        return "with its code, and its payload in parts";
    const std::optional<std::size_t> extra = header.kind == Kind::call ? extension_bytes(frame) : rule.extra_bytes;
    if (!extra) return "with half its code";
    if (frame.extra.size() != *extra) return "with an extension of the wrong size";
    if (frame.payload.size() > rule.payload_bytes_max) return "with a payload over the limit";
    if (header.kind == Kind::call && (header.flags & kParts) != 0 && frame.payload.size() != sizeof(Staged))
        return "that does not say which parts it is made of";
    if (header.kind == Kind::part && among_calls) {
        Part part;
        std::memcpy(&part, frame.extra.data(), sizeof part);
        // No bytes, of a whole of 0 bytes: the payload is withdrawn.
        if (frame.payload.empty() != (part.total_bytes == 0)) return "of nothing";
    }
    return {};
}

}  // namespace rove::wire
