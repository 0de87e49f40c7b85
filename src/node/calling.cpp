// Calls of this program: what implements Peer, CallFrame and Batch. A lost peer is brought back first, and a full mailbox
// waited for.

#include "node/begun_call.hpp"
#include "node/control/control.hpp"
#include "node/core.hpp"
#include "node/lead_until.hpp"
#include "node/names.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

// How often a call meets a peer again that goes at once.
constexpr unsigned kMeetingsPerCall = 3;
// Extensions kept ready: at 64 KiB at most, 64 MiB.
constexpr std::size_t kInlineCodesMax = 1024;

Error too_large(std::string_view name, std::size_t bytes) {
    return {ErrorCode::invalid, fmt::format("{}: a payload of {} bytes is over the limit of {}; send it in pieces",
                                            name, bytes, wire::kPayloadBytesMax)};
}

Error too_large_in_parts(std::string_view name, std::size_t bytes) {
    return {ErrorCode::invalid,
            fmt::format("{}: {} bytes of arguments are over the limit of {}; put them into a buffer there", name, bytes,
                        wire::kMessageBytesMax)};
}

}  // namespace

Status NodeCore::ready_to_send(const std::shared_ptr<PeerState>& peer, Lock& lock, std::size_t payload_bytes,
                               Deadline deadline) {
    ROVE_CHECK(in_time(deadline));
    // The frame and what may have to go with it: a name, or code that is not too large to be inlined.
    const std::size_t bytes = wire::kHeaderBytes + sizeof(FunctionId) + payload_bytes;
    if (peer->clear_way() && peer->link->has_room(Traffic::calls, bytes)) return {};
    ROVE_CHECK(no_frame_begun(*peer));
    ROVE_CHECK(make_alive(peer, lock, deadline));
    return wait_for_room(*peer, lock, Traffic::calls, bytes, deadline, {});
}

// Refuses to send where this thread is filling a frame for the peer: the send would wait for that frame for ever.
Status NodeCore::no_frame_begun(const PeerState& peer) {
    if (!peer.frame_open || peer.frame_opened_by != std::this_thread::get_id()) return {};
    return fail(ErrorCode::invalid, "a frame for {} that this thread has begun is neither posted nor dropped",
                who(peer));
}

// The fast path: the peer knows the function, and there is room.
std::optional<CallTable::Id> NodeCore::send_at_once(PeerState& peer, const Outgoing& outgoing) {
    const FunctionId& function = *outgoing.callee.id;
    const Bindings::Bound& bound = peer.bindings.recent(function);
    if (!peer.clear_way() || bound.function != function) return std::nullopt;
    const std::size_t bytes = wire::kHeaderBytes + outgoing.payload.size();
    std::byte* frame = peer.link->reserve(Traffic::calls, bytes);
    if (frame == nullptr) return std::nullopt;
    CallTable::Id id{0, 0};
    if (outgoing.wants_reply) {
        const Result<CallTable::Id> begun = calls_.begin(&peer);
        if (!begun) return std::nullopt;
        id = *begun;
    }
    const Bytes payload = outgoing.payload.whole();
    copy_bytes(frame + wire::kHeaderBytes, payload.data(), payload.size());
    peer.counters.frame_bytes_last = static_cast<std::uint32_t>(bytes);
    peer.link->publish(Traffic::calls, {.body_bytes = static_cast<std::uint32_t>(outgoing.payload.size()),
                                        .kind = Kind::call,
                                        .flags = outgoing.wants_reply ? std::uint8_t{0} : wire::kNoReply,
                                        .handle = bound.handle,
                                        .generation = id.generation,
                                        .node = peer.my_id,
                                        .call = id.slot});
    if (peer.link->by_messages()) lead_.wake();
    return id;
}

// The fast path; nothing is set up here for the others.
Result<CallTable::Id> NodeCore::call(const std::shared_ptr<PeerState>& peer, const Outgoing& outgoing) {
    const bool plain = outgoing.payload.is_whole() && outgoing.payload.size() <= wire::kPayloadBytesMax &&
                       outgoing.sending != Sending::always_inlined && !outgoing.deadline;
    if (plain) {
        const Hold hold(*this);
        if (const auto sent = send_at_once(*peer, outgoing)) return *sent;
    }
    return call_any(peer, outgoing);
}

[[gnu::noinline]] Result<CallTable::Id> NodeCore::call_any(const std::shared_ptr<PeerState>& peer,
                                                           const Outgoing& outgoing) {
    if (outgoing.payload.size() > wire::kMessageBytesMax)
        return tl::unexpected<Error>(too_large_in_parts(outgoing.callee.name, outgoing.payload.size()));
    if (!outgoing.payload.is_whole() && outgoing.payload.size() <= wire::kPayloadBytesMax) {
        ByteBuffer room;
        Outgoing joined = outgoing;
        joined.payload = outgoing.payload.joined(room);
        return call(peer, joined);
    }
    ROVE_CHECK(in_time(outgoing.deadline));
    Hold hold(*this);
    const bool whole = outgoing.payload.size() <= wire::kPayloadBytesMax;
    if (outgoing.sending != Sending::always_inlined && whole) {
        if (const auto sent = send_at_once(*peer, outgoing))
            return sent_within(*sent, outgoing.wants_reply, outgoing.deadline);
    }
    const Result<CallTable::Id> sent =
        whole ? call_whole(peer, hold.lock(), outgoing, nullptr) : call_in_parts(peer, hold.lock(), outgoing);
    if (sent) (void)sent_within(*sent, outgoing.wants_reply, outgoing.deadline);
    return sent;
}

// With the payload, or, by room that there is, with the number of one that has been sent in parts.
Result<CallTable::Id> NodeCore::call_whole(const std::shared_ptr<PeerState>& peer, Lock& lock, const Outgoing& outgoing,
                                           const wire::Staged* staged) {
    const Callee& callee = outgoing.callee;
    const bool whole = staged == nullptr;
    const Bytes payload = whole ? outgoing.payload.whole() : std::as_bytes(std::span(staged, 1));
    if (whole) ROVE_CHECK(ready_to_send(peer, lock, payload.size(), outgoing.deadline));
    if (whole && !is_client(peer->id) &&  // which takes no code
        (outgoing.sending == Sending::always_inlined ||
         (outgoing.sending == Sending::inlined && !peer->bindings.handle_of(*callee.id) &&
          peer->sent_inline[*callee.id]++ < kInlineSends)))
        return call_inline(*peer, outgoing);
    if (whole) {
        if (const auto sent = send_at_once(*peer, outgoing)) return *sent;  // there is room by now
    }
    const bool is_new_there = callee.package != nullptr && *callee.package && !peer->bindings.handle_of(*callee.id);
    if (is_new_there) ROVE_CHECK(exchange_.check_forms(*peer, **callee.package));
    // Before the call is sent: both need memory, and a call whose sender is told that there was none must not run.
    if (is_new_there) own_functions_.keep(*callee.package);
    if (callee.shipped != nullptr) own_functions_.note_shipped(*callee.id, *callee.shipped);
    ROVE_TRY(BegunCall begun, BegunCall::in(calls_, peer.get(), outgoing.wants_reply));
    const CallTable::Id id = begun.id();
    const auto flags =
        static_cast<std::uint8_t>((outgoing.wants_reply ? 0 : wire::kNoReply) | (whole ? 0 : wire::kParts));
    ROVE_CHECK(send_call(*peer, callee,
                         {.flags = flags, .generation = id.generation, .node = peer->my_id, .call = id.slot}, payload));
    return begun.sent();
}

// The code goes with the call; it is compared there with what came before, so that it is loaded once.
Result<CallTable::Id> NodeCore::call_inline(PeerState& peer, const Outgoing& outgoing) {
    ROVE_TRY(const ByteBuffer* code, inline_code(peer, *outgoing.callee.id, **outgoing.callee.package));
    if (code->size() + outgoing.payload.size() > wire::kFrameBytesMax - wire::kHeaderBytes)
        return tl::unexpected<Error>(too_large(outgoing.callee.name, outgoing.payload.size()));
    ROVE_TRY(BegunCall begun, BegunCall::in(calls_, &peer, outgoing.wants_reply));
    const CallTable::Id id = begun.id();
    const auto flags = static_cast<std::uint8_t>(wire::kInline | (outgoing.wants_reply ? 0 : wire::kNoReply));
    peer.counters.frame_bytes_last =
        static_cast<std::uint32_t>(wire::kHeaderBytes + code->size() + outgoing.payload.size());
    peer.bindings.expect();
    ROVE_CHECK(sender_.send(
        peer, Traffic::calls,
        {.kind = Kind::call, .flags = flags, .generation = id.generation, .node = peer.my_id, .call = id.slot}, *code,
        outgoing.payload.whole()));
    return begun.sent();
}

Result<const ByteBuffer*> NodeCore::inline_code(PeerState& peer, const FunctionId& function,
                                                const PackageStore& package) {
    if (const auto made = inline_codes_.find(function); made != inline_codes_.end()) return &made->second;
    const std::string& name = package.manifest().name;
    const auto slice = package.slice_index(peer.triple, Forms::image);
    const std::shared_ptr<const ByteBuffer> bytes = slice ? package.stored_slice(*slice) : nullptr;
    if (!bytes)
        return fail(ErrorCode::unsupported,
                    "package {} has no image for {}, and no other form travels inline; send it cached", name,
                    peer.triple);
    const wire::InlineCode code{.manifest_bytes = static_cast<std::uint32_t>(package.manifest_bytes().size()),
                                .slice = static_cast<std::uint32_t>(*slice),
                                .slice_bytes = static_cast<std::uint32_t>(bytes->size())};
    if (wire::inline_extension_bytes(code) > wire::kInlineBytesMax)
        return fail(ErrorCode::unsupported,
                    "package {} has an image of {} bytes, and at most {} travel inline; send it cached", name,
                    bytes->size(), wire::kInlineBytesMax);
    Writer out;
    out.bytes(function.raw());
    out.bytes(std::as_bytes(std::span(&code, 1)));
    out.bytes(package.manifest_bytes());
    out.bytes(*bytes);
    ByteBuffer extension = out.take();
    extension.resize(wire::inline_extension_bytes(code));
    if (inline_codes_.size() >= kInlineCodesMax) inline_codes_.clear();
    return &(inline_codes_[function] = std::move(extension));
}

Result<NodeCore::Begun> NodeCore::begin(const std::shared_ptr<PeerState>& peer, const Outgoing& outgoing,
                                        std::size_t payload_bytes) {
    if (payload_bytes > wire::kPayloadBytesMax)
        return tl::unexpected<Error>(too_large(outgoing.callee.name, payload_bytes));
    Hold hold(*this);
    ROVE_CHECK(ready_to_send(peer, hold.lock(), payload_bytes, outgoing.deadline));
    const auto handle = peer->bindings.handle_of(*outgoing.callee.id);
    if (!handle || !peer->clear_way()) return Begun{};
    std::byte* frame = peer->link->reserve(Traffic::calls, wire::kHeaderBytes + payload_bytes);
    if (frame == nullptr) return Begun{};
    ++begun_frames_;
    peer->frame_open = true;
    peer->frame_opened_by = std::this_thread::get_id();
    return Begun{peer->link, {frame + wire::kHeaderBytes, payload_bytes}, *handle};
}

Result<CallTable::Id> NodeCore::post_begun(PeerState& peer, Begun begun, bool wants_reply, Deadline deadline) {
    if (const Status early = in_time(deadline); !early) {
        drop_begun(peer, std::move(begun.link));
        return tl::unexpected<Error>(early.error());
    }
    std::shared_ptr<NodeCore> last;  // goes after the lock
    Hold hold(*this);
    --begun_frames_;
    last = last_use();
    const std::shared_ptr<void> held = std::move(begun.link);
    const std::shared_ptr<fabric::Link>& link = peer.link;
    if (link == held) peer.frame_open = false;
    if (link != held || !peer.linked())
        return stopped_ ? tl::unexpected<Error>(why_unusable())
                        : fail(ErrorCode::disconnected, "{} went before the frame for it was posted", who(peer));
    CallTable::Id id{0, 0};
    if (wants_reply) {
        ROVE_TRY(id, calls_.begin(&peer));
    }
    link->publish(Traffic::calls, {.body_bytes = static_cast<std::uint32_t>(begun.place.size()),
                                   .kind = Kind::call,
                                   .flags = wants_reply ? std::uint8_t{0} : wire::kNoReply,
                                   .handle = begun.handle,
                                   .generation = id.generation,
                                   .node = peer.my_id,
                                   .call = id.slot});
    if (link->by_messages() || !peer.outbox_of(Traffic::calls).is_empty()) lead_.wake();
    return sent_within(id, wants_reply, deadline);
}

void NodeCore::drop_begun(PeerState& peer, std::shared_ptr<void> link) {
    std::shared_ptr<NodeCore> last;  // goes after the lock
    Hold hold(*this);
    --begun_frames_;
    last = last_use();
    if (peer.link == link) peer.frame_open = false;  // nothing was published
    link.reset();                                    // under the lock: it may be the last to hold it
    lead_.wake();
}

Status NodeCore::post_batch(const std::shared_ptr<PeerState>& peer, const Outgoing& outgoing,
                            std::size_t payload_bytes) {
    const std::size_t stride = wire::batch_stride(payload_bytes);
    {
        Hold hold(*this);
        ROVE_CHECK(ready_to_send(peer, hold.lock(), outgoing.payload.size(), outgoing.deadline));
        if (const auto handle = peer->bindings.handle_of(*outgoing.callee.id))
            return sender_.send(*peer, Traffic::calls,
                                {.kind = Kind::batch,
                                 .flags = wire::kNoReply,
                                 .handle = *handle,
                                 .generation = static_cast<std::uint32_t>(payload_bytes),
                                 .node = peer->my_id},
                                {}, outgoing.payload.whole());
    }
    // The peer does not know the function yet: one by one.
    for (std::size_t at = 0; at < outgoing.payload.size(); at += stride) {
        const Result<CallTable::Id> posted = call(peer, {.callee = outgoing.callee,
                                                         .payload = outgoing.payload.whole().subspan(at, payload_bytes),
                                                         .wants_reply = false,
                                                         .deadline = outgoing.deadline});
        if (!posted) return tl::unexpected<Error>(posted.error());
    }
    return {};
}

Result<CallTable::Id> NodeCore::ping(const std::shared_ptr<PeerState>& peer, Bytes payload, bool wants_reply,
                                     Deadline deadline) {
    if (payload.size() > wire::kPayloadBytesMax) return tl::unexpected<Error>(too_large("ping", payload.size()));
    Hold hold(*this);
    ROVE_CHECK(ready_to_send(peer, hold.lock(), payload.size(), deadline));
    ROVE_TRY(BegunCall begun, BegunCall::in(calls_, peer.get(), wants_reply));
    ROVE_CHECK(sender_.send(*peer, Traffic::calls,
                            {.kind = Kind::ping,
                             .flags = wants_reply ? std::uint8_t{0} : wire::kNoReply,
                             .generation = begun.id().generation,
                             .node = peer->my_id,
                             .call = begun.id().slot},
                            {}, payload));
    return sent_within(begun.sent(), wants_reply, deadline);
}

Result<CallTable::Id> NodeCore::load(const std::shared_ptr<PeerState>& peer,
                                     const std::shared_ptr<PackageStore>& package, Deadline deadline) {
    ROVE_CHECK(in_time(deadline));
    Hold hold(*this);
    ROVE_CHECK(make_alive(peer, hold.lock(), deadline));
    if (is_client(peer->id)) return fail(ErrorCode::unsupported, "{} takes no code: it is a client", who(*peer));
    ROVE_CHECK(exchange_.check_forms(*peer, *package));
    own_functions_.keep(package);
    ROVE_TRY(const bool image_sent, exchange_.send(*peer, *package, Forms::image, true));
    ROVE_TRY(const bool bitcode_sent, exchange_.send(*peer, *package, Forms::bitcode, !image_sent));
    (void)bitcode_sent;
    peer->code_sent.insert(package->digest());
    ROVE_TRY(BegunCall begun, BegunCall::in(calls_, peer.get(), true));
    ROVE_CHECK(sender_.send(
        *peer, Traffic::replies,
        {.kind = Kind::load, .generation = begun.id().generation, .node = peer->my_id, .call = begun.id().slot},
        package->digest().raw(), {}));
    return sent_within(begun.sent(), true, deadline);
}

// A thread that waits for room in a mailbox.
struct NodeCore::RoomWait {
    PeerState& peer;
    fabric::Traffic traffic;
    std::size_t bytes;  // of the frame
    bool told = false;
    [[nodiscard]] bool has_room() const;
};

bool NodeCore::RoomWait::has_room() const {
    if (!peer.linked()) return true;  // it will not come: whoever waits is told
    const bool free = traffic == Traffic::replies || !peer.frame_open;
    return free && peer.outbox_of(traffic).is_empty() && peer.link->has_room(traffic, bytes);
}

// Credit wakes nobody by itself: whoever leads looks for those that wait for it.
unsigned NodeCore::tell_of_room() {
    unsigned told = 0;
    for (RoomWait* wait : room_waits_)
        if (!wait->told && wait->has_room()) {
            wait->told = true;
            ++told;
        }
    if (told > 0) lead_.tell_waiting();
    return told;
}

Status NodeCore::wait_for_room(PeerState& peer, Lock& lock, Traffic traffic, std::size_t bytes, Deadline deadline,
                               Manner manner) {
    RoomWait wait{peer, traffic, bytes};
    if (!wait.has_room()) {
        struct Noted {
            std::vector<RoomWait*>& all;
            RoomWait* wait;
            ~Noted() { std::erase(all, wait); }  // also where memory runs out meanwhile
        };
        room_waits_.push_back(&wait);
        const Noted noted{room_waits_, &wait};
        lead_.expect_room();  // the leader may be sleeping until a frame arrives
        const bool room = lead_until(
            lock, deadline,
            [&wait] {
                wait.told = false;  // it is looking itself
                return wait.has_room();
            },
            manner);
        if (!room && ending_) return tl::unexpected<Error>(stopped());
        if (!room)
            return fail(ErrorCode::timed_out,
                        "the mailbox of {} had no room until the time that the call was given was over: it is stopped, "
                        "or busy; the call was not sent",
                        who(peer));
    }
    if (!peer.linked())
        return fail(ErrorCode::disconnected, "{} went while a call waited for room{}", who(peer), because(peer.gone));
    return {};
}

// The next call after a peer was lost reaches for its address again.
Status NodeCore::make_alive(const std::shared_ptr<PeerState>& peer, Lock& lock, Deadline deadline) {
    if (shut_down_ || ending_) return tl::unexpected<Error>(stopped());
    for (unsigned meetings = 0; meetings < kMeetingsPerCall; ++meetings) {
        if (peer->linked()) return {};
        ROVE_CHECK(await_goodbye(*peer, lock, deadline));
        if (peer->linked()) return {};
        if (peer->link) clean_up(*peer);
        if (peer->address.empty())
            return fail(ErrorCode::disconnected, "{} is gone{}", who(*peer), because(peer->gone));
        const std::string address = peer->address;
        lock.unlock();
        Result<std::shared_ptr<PeerState>> met = control_->connect(address, peer, deadline);
        lock.lock();
        if (!met) return tl::unexpected<Error>(met.error());
        if (deadline && Clock::now() >= *deadline)
            return fail(ErrorCode::timed_out, "{} was met again too late; the call was not sent", who(*peer));
    }
    if (peer->linked()) return {};
    return fail(ErrorCode::disconnected, "{} was met again {} times, and went each time{}", who(*peer),
                kMeetingsPerCall, because(peer->gone));
}

// The call has left, and may run. Where there is no memory to keep its limit, the limit counts as over.
void NodeCore::limit_sent(CallTable::Id call, TimePoint deadline) try {
    calls_.limit(call, deadline);
    lead_.wake();  // it may be sleeping for longer
} catch (const std::bad_alloc&) {
    CallSlot* const slot = calls_.flying(call);
    slot->end(Error(ErrorCode::timed_out, "no memory"));  // so short that it takes none
    call_ended(*slot);
    lead_.wake();  // it runs what was asked for at the call's end
}

}  // namespace rove
