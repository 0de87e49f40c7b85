#include "engine/reply_receiver.hpp"

#include <algorithm>

#include "peer/names.hpp"
#include "program/callables.hpp"
#include "wire/kinds.hpp"

namespace rove {

namespace {

// The peer has no function of that name, and what it answers says so.
std::string why_lacking(const detail::Callable& function, const std::string& answered) {
    const Result<const detail::Callable::Code*> code = detail::code_of(function);
    return fmt::format("{}: {}: {}", function.name, answered, code ? (*code)->why_not : code.error().message());
}

}  // namespace

// The peer that was called may answer, and so may any member if both are members, because members send calls on.
bool ReplyReceiver::may_answer(const PeerState& from, const CallSlot& slot) {
    return slot.peer == &from || (from.is_fellow() && (slot.peer == nullptr || slot.peer->is_fellow()));
}

void ReplyReceiver::receive(PeerState& from, const wire::Frame& frame) {
    static_assert(std::ranges::all_of(wire::kKindRules, [](const wire::KindRule& each) {
        return wire::is_answer(each.kind) == (each.kind == wire::Kind::reply || each.kind == wire::Kind::part);
    }));
    if (frame.header.kind == wire::Kind::part)
        on_reply_part(from, frame);
    else
        on_reply(&from, frame);
}

void ReplyReceiver::on_reply(PeerState* from, const wire::Frame& frame) {
    const wire::FrameHeader& header = frame.header;
    const bool mine = header.node == (from != nullptr ? from->my_id() : routes_.id());
    if (!mine) return sender_.pass_reply_on(*from, frame);  // what this node tells itself is its own
    CallSlot* slot = own_calls_.table().flying({header.call, header.generation});
    if (slot == nullptr) return leave_to_caller(from, frame) ? void() : own_calls_.came_late(from, frame);
    if (from == nullptr || may_answer(*from, *slot)) end_by(*slot, frame);
}

void ReplyReceiver::end_by(CallSlot& slot, const wire::Frame& reply) {
    const wire::FrameHeader& header = reply.header;
    if ((header.flags & wire::kError) != 0) {
        std::string_view message = as_text(reply.payload).substr(0, wire::kErrorBytesMax), type;
        if (const std::size_t zero = message.find('\0');
            (header.flags & wire::kThrown) != 0 && zero != std::string_view::npos) {
            type = message.substr(0, zero);
            message.remove_prefix(zero + 1);
        }
        try {
            std::string words(message);
            if (slot.not_shipped != nullptr && (header.flags & wire::kThrown) == 0 &&
                static_cast<ErrorCode>(header.status) == ErrorCode::unsupported)
                words = why_lacking(*slot.not_shipped, words);
            slot.end(Error::reported(static_cast<ErrorCode>(header.status), std::move(words), header.handle,
                                     std::string(type)));
        } catch (const std::bad_alloc&) {  // for its words
            slot.end(Error(static_cast<ErrorCode>(header.status), "no memory"));
        }
    } else {
        slot.node = header.handle;
        slot.ran = static_cast<RanAs>(header.status);
        slot.hops = header.hops;
        if ((header.flags & wire::kParts) != 0)
            slot.end_reassembled();
        else
            own_calls_.table().end(slot, reply.payload);
    }
    own_calls_.ended(slot);
}

void ReplyReceiver::on_reply_part(PeerState& from, const wire::Frame& frame) {
    if (frame.header.node != from.my_id()) return sender_.route(frame);
    CallSlot* slot = own_calls_.table().flying({frame.header.call, frame.header.generation});
    if (slot == nullptr && leave_to_caller(&from, frame)) return;
    if (slot == nullptr || !may_answer(from, *slot)) return;  // late, or somebody else's to answer
    if (!take_part(*slot, frame))
        from.link()->break_with(Error(ErrorCode::invalid, who(from) + " sent a part of a result out of its order"));
}

bool ReplyReceiver::take_part(CallSlot& slot, const wire::Frame& frame) {
    const auto part = wire::copy_of<wire::Part>(frame.extra);
    // The size once more, as in PayloadParts::add: this is the copy that is used.
    const auto parts = part.total_bytes > wire::kMessageBytesMax
                           ? CallTable::Reassembled::wrong
                           : own_calls_.table().reassemble(slot, part.offset, part.total_bytes, frame.payload);
    if (parts == CallTable::Reassembled::ended)
        own_calls_.ended(slot);  // the other parts, and the reply, are late then
    return parts != CallTable::Reassembled::wrong;
}

// True: another engine of this node has made the call. It has the answer, if a node has sent it that may.
bool ReplyReceiver::leave_to_caller(const PeerState* from, const wire::Frame& frame) {
    const auto engine = others_.with_call(frame.header.generation);
    if (!engine) return false;
    if (from == nullptr || from->is_fellow())
        (void)others_.leave(*engine, LeftForEngine::What::to_own_call, frame, /*by_fellow=*/from != nullptr);
    return true;
}

void ReplyReceiver::receive_left(const wire::Frame& frame, bool by_fellow) {
    CallSlot* const slot = own_calls_.table().flying({frame.header.call, frame.header.generation});
    if (slot == nullptr) return own_calls_.came_late(nullptr, frame);
    if (by_fellow && slot->peer != nullptr && !slot->peer->is_fellow()) return;
    if (frame.header.kind == wire::Kind::reply) return end_by(*slot, frame);
    if (take_part(*slot, frame)) return;
    slot->end(Error(ErrorCode::disconnected, "a part of the result was lost on its way"));
    own_calls_.ended(*slot);
}

}  // namespace rove
