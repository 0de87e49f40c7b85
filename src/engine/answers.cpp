#include "engine/answers.hpp"

#include <algorithm>
#include <cstring>

#include "peer/names.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

// A peer that takes nothing of a large result for this long is cut off: it is stopped, or hostile.
constexpr auto kUntakenReplyFor = std::chrono::seconds(20);

// The header of this node's answer to a call, without the answer's size, flags and status. `here`: this node.
wire::FrameHeader answer_to(const wire::CallContext& call, NodeId here) {
    wire::FrameHeader answer = wire::header_of(call, Kind::reply);
    answer.handle = here;
    answer.flags = 0;  // kNoReply is a flag of calls
    return answer;
}

}  // namespace

void Answers::send(wire::FrameHeader reply, Bytes payload) noexcept {
    reply.kind = Kind::reply;
    if (reply.hops > 1) sender_.forget_sent_on(reply);  // it came back to this node, which had sent it on
    const wire::Frame frame{reply, {}, payload};
    if (reply.node == routes_.id()) return replies_.on_reply(nullptr, frame);
    sender_.route(frame);
}

// The fast path: the peer has room.
bool Answers::reply_at_once(const wire::CallContext& call, RanAs ran, Bytes data) {
    if (call.hops > 1) return false;  // send() has more to do
    const NodeId here = routes_.id();
    PeerState* peer = call.node != here ? routes_.to(call.node) : nullptr;
    if (peer == nullptr || !peer->link() || peer->lost() || !peer->outbox_of(Traffic::prompt).is_empty()) return false;
    std::byte* frame = peer->link()->reserve(Traffic::prompt, wire::kHeaderBytes + data.size());
    if (frame == nullptr) return false;
    copy_bytes(frame + wire::kHeaderBytes, data.data(), data.size());
    wire::FrameHeader reply = peer->addressed(answer_to(call, here), here);
    reply.body_bytes = static_cast<std::uint32_t>(data.size());
    reply.status = static_cast<std::uint8_t>(ran);
    peer->link()->publish(Traffic::prompt, reply);
    if (peer->link()->by_messages()) lead_.wake();
    return true;
}

void Answers::end_at_once(const wire::CallContext& call, RanAs ran, Bytes data) {
    if (!call.wants_reply || reply_at_once(call, ran, data)) return;
    wire::FrameHeader answer = answer_to(call, routes_.id());
    answer.status = static_cast<std::uint8_t>(ran);
    send(answer, data);
}

Status Answers::end_with_reply(const wire::CallContext& call, RanAs ran, const Pieces& data, HeldLock& lock) {
    if (data.size() > wire::kMessageBytesMax)
        return fail(ErrorCode::invalid, "a reply of {} bytes is over the limit of {}; leave it in a buffer",
                    data.size(), wire::kMessageBytesMax);
    const bool whole = data.size() <= wire::kPayloadBytesMax || call.node == routes_.id();
    if (!call.wants_reply || (whole && reply_at_once(call, ran, data.whole()))) return {};
    const bool taken = whole ? await_room(call.node, wire::kHeaderBytes + data.size(), kFullBacklogBytes, lock)
                             : reply_in_parts(call, data, lock);
    if (!taken) {
        end_with_error(call, runner_.is_ending()
                                 ? was_shut_down(name_())
                                 : Error(ErrorCode::disconnected,
                                         "the caller's node was lost, or took nothing, while the result was sent"));
        return {};
    }
    wire::FrameHeader answer = answer_to(call, routes_.id());
    answer.flags = whole ? 0 : wire::kParts;
    answer.status = static_cast<std::uint8_t>(ran);
    send(answer, whole ? data.whole() : Bytes());
    return {};
}

// Needs no memory but what the frame may take where it has to wait (send_or_cut).
void Answers::end_with_error(const wire::CallContext& call, const Error& error) noexcept {
    if (!call.wants_reply) return tell_of_failed_post(call, error);
    std::string with_type;
    try {
        if (!error.exception_type().empty())
            with_type = error.exception_type().substr(0, wire::kErrorTypeBytesMax) + '\0' + error.message();
    } catch (const std::bad_alloc&) {  // the message alone, then
    }
    const Bytes message = as_bytes(with_type.empty() ? error.message() : with_type);
    wire::FrameHeader answer = answer_to(call, routes_.id());
    answer.flags = static_cast<std::uint8_t>(wire::kError | (with_type.empty() ? 0 : wire::kThrown));
    answer.status = static_cast<std::uint8_t>(error.code());
    send(answer, message.first(std::min(message.size(), wire::kErrorBytesMax)));
}

void Answers::tell_of_failed_post(const wire::CallContext& call, const Error& error) noexcept try {
    complaints_.say(name_(), fmt::format("a post from {} failed: {}", who(call.node, {}), error.message()));
} catch (const std::bad_alloc&) {  // nobody waits for it
}

bool Answers::try_reply(const wire::CallContext& to, RanAs ran, Bytes data) noexcept try {
    const Hold hold(lead_.mutex());
    [[clang::always_inline]] return reply_at_once(to, ran, data);
} catch (const std::bad_alloc&) {  // the caller of this then calls reply()
    return false;
}

Status Answers::reply(const wire::CallContext& to, RanAs ran, const Pieces& data) {
    if (data.is_whole()) {
        Hold hold(lead_.mutex());
        return end_with_reply(to, ran, data, hold.lock());
    }
    ByteBuffer room;
    const bool in_parts = data.size() > wire::kPayloadBytesMax && to.node != routes_.id();
    const Pieces one = in_parts || data.size() > wire::kMessageBytesMax ? data : Pieces(data.joined(room));
    Hold hold(lead_.mutex());
    return end_with_reply(to, ran, one, hold.lock());
}

void Answers::reply_error(const wire::CallContext& to, const Error& error) {
    if (process_.is_past()) return;
    const Hold hold(lead_.mutex());
    end_with_error(to, error);
}

// Waits while at least `waiting` bytes of replies are queued for the caller's node. False: it takes nothing and was cut off, or has gone.
bool Answers::await_room(NodeId to, std::size_t bytes, std::size_t waiting, HeldLock& lock) {
    PeerState* const peer = to != routes_.id() ? routes_.to(to) : nullptr;
    if (peer == nullptr || peer->outbox_of(Traffic::prompt).bytes() < waiting) return true;
    const std::shared_ptr<PeerState> kept = peer->shared_from_this();
    for (;;) {
        const Status room =
            rooms_.wait(*kept, lock, Traffic::prompt, bytes, Clock::now() + kUntakenReplyFor, {.quiet = true});
        if (room || room.error().code() != ErrorCode::timed_out || !kept->link()) return room.has_value();
        if (Clock::now() - kept->outbox_of(Traffic::prompt).taken_at() < kUntakenReplyFor) continue;  // slowly
        kept->link()->break_with(Error(ErrorCode::overloaded, who(*kept) + " does not take its replies"));
        return false;
    }
}

// Sends a result that is larger than a frame in parts, each routed as the reply that follows them. The replying thread waits for room, so that
// a caller that takes large results slowly is not cut off; one that takes nothing at all is.
bool Answers::reply_in_parts(const wire::CallContext& call, const Pieces& data, HeldLock& lock) {
    const auto meeting = [&]() REQUIRES(lock_of<EngineLock>) {
        const PeerState* const peer = routes_.to(call.node);
        return peer != nullptr ? peer->meeting() : 0;
    };
    const std::uint64_t begun_in = meeting();
    return data.each_part(wire::kPartBytesMax, [&](std::size_t offset, Bytes piece) {
        engine_lock_is_held();
        lock.let_others();
        if (!await_room(call.node, wire::kHeaderBytes + sizeof(wire::Part) + piece.size(), 0, lock)) return false;
        if (begun_in != 0 && meeting() != begun_in) return false;  // the parts before this one went with the link
        const wire::Part part{.offset = static_cast<std::uint32_t>(offset),
                              .total_bytes = static_cast<std::uint32_t>(data.size())};
        wire::FrameHeader header = wire::header_of(call, Kind::part);
        header.handle = routes_.id();
        header.hops = 0;  // unused in a part
        sender_.route({header, std::as_bytes(std::span(&part, 1)), piece});
        return true;
    });
}

}  // namespace rove
