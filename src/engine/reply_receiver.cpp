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

// Its function has run. In words that take no memory.
Error no_memory_for_result() {
    return {ErrorCode::failed, "no memory"};
}

}  // namespace

// The peer that was called may answer, and so may any member if both are members, because members send calls on.
// So may this node itself (`from` is null), to which they may have sent it.
bool ReplyReceiver::may_answer(const PeerState* from, const CallSlot& slot) {
    const bool goes_among_members = slot.peer == nullptr || slot.peer->is_fellow();
    return from != nullptr ? slot.peer == from || (from->is_fellow() && goes_among_members) : goes_among_members;
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
    if (may_answer(from, *slot)) end_by(*slot, frame);
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
        try {
            if ((header.flags & wire::kParts) != 0)
                slot.end_reassembled();
            else
                own_calls_.table().end(slot, reply.payload);
        } catch (const std::bad_alloc&) {
            slot.end(no_memory_for_result());
        }
    }
    own_calls_.ended(slot);
}

void ReplyReceiver::on_reply_part(PeerState& from, const wire::Frame& frame) {
    // The copy that is used, here and by everybody to whom it is sent on.
    const auto part = wire::copy_of<wire::Part>(frame.extra);
    const wire::Frame copied{frame.header, std::as_bytes(std::span(&part, 1)), frame.payload};
    if (const std::string_view fault = wire::wrong_part(part, frame.payload.size(), /*among_calls=*/false);
        !fault.empty())
        return from.link()->break_with(Error(ErrorCode::invalid, fmt::format("{} sent a part {}", who(from), fault)));
    if (frame.header.node != from.my_id()) return sender_.route(copied);
    CallSlot* slot = own_calls_.table().flying({frame.header.call, frame.header.generation});
    if (slot == nullptr && leave_to_caller(&from, copied)) return;
    if (slot == nullptr || !may_answer(&from, *slot)) return;  // late, or somebody else's to answer
    take_part(*slot, part, frame.payload);
}

// A part out of its order costs the call and not the link, because the peer may have passed it on for another.
void ReplyReceiver::take_part(CallSlot& slot, const wire::Part& part, Bytes bytes) {
    using enum CallTable::Reassembled;
    const auto parts = own_calls_.table().reassemble(slot, part.offset, part.total_bytes, bytes);
    if (parts == wrong) slot.end(Error(ErrorCode::internal, "the result's parts came out of their order"));
    if (parts != taken) own_calls_.ended(slot);  // the other parts, and the reply, are late then
}

// True: another engine of this node has made the call. It has the answer, if a node has sent it that may.
bool ReplyReceiver::leave_to_caller(const PeerState* from, const wire::Frame& frame) {
    const auto engine = others_.with_call(frame.header.generation);
    if (!engine) return false;
    if (from == nullptr || from->is_fellow()) (void)others_.leave(*engine, LeftForEngine::What::to_own_call, frame);
    return true;
}

void ReplyReceiver::receive_left(const wire::Frame& frame) {
    CallSlot* const slot = own_calls_.table().flying({frame.header.call, frame.header.generation});
    if (slot == nullptr) return own_calls_.came_late(nullptr, frame);
    if (!may_answer(nullptr, *slot)) return;  // this node has answered it, or another member
    if (frame.header.kind == wire::Kind::reply) return end_by(*slot, frame);
    try {
        take_part(*slot, wire::copy_of<wire::Part>(frame.extra), frame.payload);
    } catch (const std::bad_alloc&) {  // the frame is gone: no link is cut, and nobody sends it again
        slot->end(no_memory_for_result());
        own_calls_.ended(*slot);
    }
}

}  // namespace rove
