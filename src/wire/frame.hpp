// Frames: the messages in a mailbox. The byte layout is documented in docs/frames.md, with a worked example.
//
// A frame is a 32-byte header, an extension of `extra_bytes` (a multiple of 16) whose meaning depends on the kind, and the
// payload, which is therefore 16-byte aligned. Frames begin on cache lines; a call with up to 32 bytes of payload to a
// function whose handle is known is one line. The signal word is stored last and separately: it announces that the whole
// frame has been written.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace rove::wire {

enum class Kind : std::uint8_t {
    none = 0,
    filler = 1,  // the ring's last lines, too few for the next frame
    call = 2,    // run a function; replies are sent to `node`
    reply = 3,   // a call's end; destination `node`
    bind = 4,    // extension: FunctionId; `handle` names it from now on (receiver -> sender of the call)
    code = 5,    // extension: CodeChunk; payload: its bytes; destination `node`
    need = 6,    // extension: NeedCode; destination `node`; asks for the code of a function
    lack = 7,    // extension: NeedCode; destination `node`; no node on the way has that code
    load = 8,    // extension: LoadPackage; load this package now; answered by a reply
    batch = 9,   // several posts of one function; `generation` bytes of payload each, every one on a multiple of 16
    ping = 10,   // like a call that runs nothing
    part = 11,   // extension: Part; payload: its bytes; of a payload or a result that is larger than a frame
};
inline constexpr auto kKindMax = static_cast<std::uint8_t>(Kind::part);

// Flags of a frame. The two lowest bits of a call's are one field of four values: how it names its function.
inline constexpr std::uint8_t kNaming = 3;
inline constexpr std::uint8_t kByHandle = 0;  // by `handle`; no extension
inline constexpr std::uint8_t kById = 1;      // the extension is a FunctionId; here and below `handle` means nothing
inline constexpr std::uint8_t kByEither = 2;  // the extension is an Either
inline constexpr std::uint8_t kInline = 3;    // the extension is a FunctionId, InlineCode and the code
inline constexpr std::uint8_t kNoReply = 4;   // call, batch, ping: a post
inline constexpr std::uint8_t kParts =
    8;  // call: the payload is a Staged, reply: empty; the data itself was sent in parts
inline constexpr std::uint8_t kError = 16;   // reply: `status` is an ErrorCode and the payload its message
inline constexpr std::uint8_t kThrown = 32;  // reply, with kError: before the message the exception's type, and a zero
inline constexpr std::uint8_t kMeant =
    64;  // bind: the extension is what `handle` meant, which its sender gave and forgot
// 128 is reserved (docs/frames.md).

// `signal` is stored last, separately, with release. It is the ring's secret key plus the frame's number in that ring, from
// 1: no other frame has it, and payload that an earlier lap left has it with a chance of 2^-64 (docs/frames.md).
struct FrameHeader {
    std::uint64_t signal = 0;
    std::uint32_t body_bytes = 0;   // size of extension and payload; determines how many lines the frame takes
    std::uint16_t extra_bytes = 0;  // size of the extension; a multiple of 16
    Kind kind = Kind::none;
    std::uint8_t flags = 0;
    std::uint32_t handle =
        0;  // call: function; part: handle_in_part(); bind: the handle assigned; reply: the node that answered
    std::uint32_t generation =
        0;                    // the caller's slot's, so that a late reply is recognised; batch: bytes of one payload
    NodeId node = kNoNode;    // call: the node that made it; others: the destination
    std::uint16_t call = 0;   // the caller's slot
    std::uint8_t hops = 0;    // forwards so far; code: 1 if a member passes it on for another
    std::uint8_t status = 0;  // reply: the form in which the function ran (RanAs), or with kError an ErrorCode
};
static_assert(sizeof(FrameHeader) == 32);

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kHeaderBytes = sizeof(FrameHeader);
// The largest payload of one frame: 1/4 of a mailbox ring less room for header and extension, so that four of the largest
// frames are in flight at once, and one always fits wherever the ring's end is.
inline constexpr std::size_t kPayloadBytesMax = 256 * 1024 - 1024;
inline constexpr std::size_t kFrameBytesMax = 256 * 1024;
// The largest filler: a mailbox ring less one line. One as long as the ring could follow another one, and fillers for ever would keep the reader,
// which passes over them in one go.
inline constexpr std::size_t kFillerBytesMax = 1024 * 1024 - kLineBytes;
// The largest error message, including its exception's type: the rest is cut off by the sender and by the receiver. A caller keeps one for
// each call in flight.
inline constexpr std::size_t kErrorBytesMax = 4096;
inline constexpr std::size_t kErrorTypeBytesMax = 1024;
// The largest payload or result in parts: bounds what the receiver reassembles. Larger data belongs into a buffer.
inline constexpr std::size_t kMessageBytesMax = 32 * 1024 * 1024;
// How many times a call may be forwarded before it is considered to be in an endless circle. A walk over a graph of a million nodes that
// forwards itself at each step would need a wider field: such a walk batches its steps (see examples).
inline constexpr std::uint8_t kHopsMax = 255;

// The part of a call, besides its function and payload, that travels with it to every node that runs it. header_of() and NamedCall write it
// into a frame, and context_of() reads it. All other code copies it as a whole, except SentOn, which keeps only what an answer needs.
// `rove_here` keeps it while the function runs, and the answer is sent by it.
struct CallContext {
    std::uint32_t generation = 0;  // the caller's slot's
    NodeId node = kNoNode;         // the node that made the call, and gets the answer
    std::uint16_t call = 0;        // the caller's slot
    std::uint8_t hops = 0;         // how many times the call was forwarded
    bool wants_reply = true;
    friend constexpr bool operator==(const CallContext&, const CallContext&) = default;
};
static_assert(sizeof(CallContext) == 12 && std::is_trivially_copyable_v<CallContext>);

// The context of a call that its function forwards: the same caller waits for its end. Nothing: it may not be forwarded again.
[[nodiscard]] constexpr std::optional<CallContext> sent_on(CallContext call) {
    if (call.hops == kHopsMax) return std::nullopt;
    ++call.hops;
    return call;
}

// The context of a call that a function makes itself, while `call` runs it. Its caller is this node, and its hops count from 0. Nothing of
// `call` is in it today; a budget would be (docs/changing-rove.md), and all code by which functions make calls already passes `call`.
[[nodiscard]] constexpr CallContext made_within(const CallContext& /*call*/, bool wants_reply) {
    return {.wants_reply = wants_reply};
}

// The header of a call, or of another frame that is answered like a call or answers one.
[[nodiscard]] constexpr FrameHeader header_of(const CallContext& call, Kind kind = Kind::call) {
    return {.kind = kind,
            .flags = call.wants_reply ? std::uint8_t{0} : kNoReply,
            .generation = call.generation,
            .node = call.node,
            .call = call.call,
            .hops = call.hops};
}

[[nodiscard]] constexpr std::uint64_t lines_of(std::size_t frame_bytes) {
    return (frame_bytes + kLineBytes - 1) / kLineBytes;
}

[[nodiscard]] constexpr std::uint64_t lines_of(const FrameHeader& header) {
    return lines_of(kHeaderBytes + std::size_t{header.body_bytes});
}

// The distance between payloads in a batch.
[[nodiscard]] constexpr std::size_t batch_stride(std::size_t payload_bytes) {
    return std::max<std::size_t>(16, (payload_bytes + 15) / 16 * 16);
}

// A frame as the receiver sees it. The header was copied once, and checked. `extra` and `payload` are still in place, within the frame's lines,
// where a direct peer can change their bytes at any time: what is checked there is copied first.
struct Frame {
    FrameHeader header;
    Bytes extra;
    Bytes payload;
};

// The struct at the beginning of a frame's extension or payload, whose size was checked.
template <typename T>
[[nodiscard]] T copy_of(Bytes bytes) {
    static_assert(std::is_trivially_copyable_v<T>);
    T copy;
    std::memcpy(&copy, bytes.data(), sizeof copy);
    return copy;
}

// A whole frame that this process keeps, including the header, which is well formed. The frame's parts are in `bytes`.
[[nodiscard]] inline Frame frame_in(const ByteBuffer& bytes) {
    Frame frame;
    std::memcpy(&frame.header, bytes.data(), sizeof frame.header);
    const Bytes body = Bytes(bytes).subspan(kHeaderBytes);
    frame.extra = body.first(frame.header.extra_bytes);
    frame.payload = body.subspan(frame.header.extra_bytes);
    return frame;
}

[[nodiscard]] constexpr std::uint8_t naming_of(const FrameHeader& call) {
    return call.flags & kNaming;
}

// The context of a call, or of another frame that is answered like a call.
[[nodiscard]] constexpr CallContext context_of(const Frame& frame) {
    const FrameHeader& header = frame.header;
    return {.generation = header.generation,
            .node = header.node,
            .call = header.call,
            .hops = header.hops,
            .wants_reply = (header.flags & kNoReply) == 0};
}

// A call's frame without its payload: the context, and how it names its function. `name`: the bytes for that, which outlive this.
struct NamedCall {
    NamedCall(const CallContext& call, std::uint32_t handle) : header(header_of(call)) { header.handle = handle; }
    NamedCall(const CallContext& call, std::uint8_t naming, Bytes name) : header(header_of(call)), extra(name) {
        header.flags |= naming;
    }
    FrameHeader header;
    Bytes extra;
};

// Whether a header is one of a frame: a known kind, a body within the bound, an extension within the body and a multiple of 16. The node
// checks what the numbers mean.
[[nodiscard]] constexpr bool is_well_formed(const FrameHeader& header) {
    const auto kind = static_cast<std::uint8_t>(header.kind);
    return kind != 0 && kind <= kKindMax && header.extra_bytes % 16 == 0 && header.extra_bytes <= header.body_bytes &&
           (header.body_bytes <= kFrameBytesMax - kHeaderBytes ||
            (header.kind == Kind::filler && header.body_bytes <= kFillerBytesMax - kHeaderBytes));
}

// Extension of `code`: a piece of an item of a package. Item 0: the manifest; item n+1: slice n as stored.
struct CodeChunk {
    Digest package;
    std::uint32_t item = 0;
    std::uint32_t offset = 0;
    std::uint32_t total_bytes = 0;  // size of the item
    std::uint32_t reserved = 0;
};
static_assert(sizeof(CodeChunk) == 48);

// Extension of `need` and `lack`.
struct NeedCode {
    FunctionId function;      // all zero: the asking node knows only `handle`
    NodeId asker = kNoNode;   // the node that lacks the code
    NodeId origin = kNoNode;  // the node that made the call, which is asked last
    std::uint32_t handle = 0;
    std::uint32_t reserved = 0;
    std::array<char, 32> triple{};  // the asking node's target, zero-padded
};
static_assert(sizeof(NeedCode) == 64);

// Extension of a call to a function of the sender's program, which the receiver's program may have as well: the id that it would
// have there, and the id by which its code travels (zero: it does not). If the schemas of what it takes and returns differ,
// it is not the same function.
struct Either {
    FunctionId resident;
    FunctionId shipped;
    std::uint32_t schema = 0;
    std::uint32_t forms =
        0;  // if the package holds that function alone: a number for its forms, the same for the same forms; else 0
    std::array<std::uint32_t, 2> reserved{};
};
static_assert(sizeof(Either) == 48);

// Extension of `part`. The parts of a whole arrive in their order, before the frame that needs them. A result is identified by the frame's
// call and generation, a payload by a number that its sender counts up.
struct Part {
    std::uint64_t number = 0;
    std::uint32_t offset = 0;
    std::uint32_t total_bytes = 0;
};
static_assert(sizeof(Part) == 16);
// The first part of a payload names the function that the call will be for, so that it can begin before the call has arrived: its header's
// `handle` is one more than that function's; 0: it names none.
[[nodiscard]] constexpr std::uint32_t handle_in_part(std::optional<std::uint32_t> function) {
    return function ? *function + 1 : 0;
}
[[nodiscard]] constexpr std::optional<std::uint32_t> function_in_part(const FrameHeader& part) {
    return part.handle != 0 ? std::optional(part.handle - 1) : std::nullopt;
}
inline constexpr std::size_t kPartBytesMax = 64 * 1024;  // the receiver copies one while the next is written

// The payload of a call whose actual payload was sent in parts.
struct Staged {
    std::uint64_t number = 0;
    std::uint64_t total_bytes = 0;
};
static_assert(sizeof(Staged) == 16);

// Part of the extension of a call that contains its code: after this struct the manifest, one slice as stored, and zeros up to a multiple
// of 16.
struct InlineCode {
    std::uint32_t manifest_bytes = 0;
    std::uint32_t slice = 0;  // index in the manifest
    std::uint32_t slice_bytes = 0;
    std::uint32_t reserved = 0;
};
static_assert(sizeof(InlineCode) == 16);
// The largest extension; its size has 16 bits in a frame.
inline constexpr std::size_t kInlineBytesMax = 65520;
[[nodiscard]] constexpr std::size_t inline_extension_bytes(const InlineCode& code) {
    return (sizeof(FunctionId) + sizeof(InlineCode) + std::size_t{code.manifest_bytes} + code.slice_bytes + 15) / 16 *
           16;
}

// Extension of `load`.
struct LoadPackage {
    Digest package;
};
static_assert(sizeof(LoadPackage) == 32);

}  // namespace rove::wire
