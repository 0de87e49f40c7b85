// Sending: into the peer's mailbox where there is room, else into the outbox behind what waits there already.

#include <algorithm>

#include "node/control/control.hpp"
#include "node/core.hpp"
#include "node/log.hpp"
#include "node/names.hpp"
#include "node/offload.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

// Gives the calls of others that wait for room in the peer's mailbox to `end`. They are known as those in the mailbox are, and removed
// there.
template <typename End>
void take_unsent(PeerState& peer, End&& end) {
    static_assert(noexcept(end(std::declval<const wire::FrameHeader&>())));
    for (const ByteBuffer& waiting : peer.outbox_of(Traffic::calls)) {
        wire::FrameHeader header;
        std::memcpy(&header, waiting.data(), sizeof header);
        if (header.kind != Kind::call || header.node == peer.my_id) continue;
        (void)peer.sent_on.answered(header.node, header.call, header.generation);
        end(header);
    }
}

}  // namespace

void NodeCore::end_call(wire::FrameHeader reply, Bytes payload) noexcept {
    reply.kind = Kind::reply;
    if (reply.hops > 1) sender_.forget_sent_on(reply);  // it came back to this node, which had sent it on
    const wire::Frame frame{reply, {}, payload};
    if (reply.node == id()) return on_reply(nullptr, frame);
    sender_.route(frame);
}

// The fast path: the peer has room.
bool NodeCore::reply_at_once(const wire::FrameHeader& call, RanAs ran, Bytes data) {
    if (call.hops > 1) return false;  // end_call() has more to do
    PeerState* peer = call.node != id() ? routes_.to(call.node) : nullptr;
    if (peer == nullptr || !peer->link || peer->lost || !peer->outbox_of(Traffic::replies).is_empty()) return false;
    std::byte* frame = peer->link->reserve(Traffic::replies, wire::kHeaderBytes + data.size());
    if (frame == nullptr) return false;
    copy_bytes(frame + wire::kHeaderBytes, data.data(), data.size());
    peer->link->publish(Traffic::replies, {.body_bytes = static_cast<std::uint32_t>(data.size()),
                                           .kind = Kind::reply,
                                           .handle = peer->is_foreign() ? peer->my_id : id(),
                                           .generation = call.generation,
                                           .node = peer->is_foreign() ? peer->id : call.node,
                                           .call = call.call,
                                           .hops = call.hops,
                                           .status = static_cast<std::uint8_t>(ran)});
    if (peer->link->by_messages()) lead_.wake();
    return true;
}

// As this node answers a call. Beside it stand the answer's size, flags and status.
wire::FrameHeader NodeCore::answer_to(const wire::FrameHeader& call) const {
    return {.handle = id(), .generation = call.generation, .node = call.node, .call = call.call, .hops = call.hops};
}

Status NodeCore::end_with_reply(const wire::FrameHeader& call, RanAs ran, const Pieces& data, Lock* lock) {
    if (data.size() > wire::kMessageBytesMax)
        return fail(ErrorCode::invalid, "a reply of {} bytes is over the limit of {}; leave it in a buffer",
                    data.size(), wire::kMessageBytesMax);
    const bool whole = data.size() <= wire::kPayloadBytesMax || call.node == id() || lock == nullptr;
    if ((call.flags & wire::kNoReply) != 0 || (whole && reply_at_once(call, ran, data.whole()))) return {};
    const bool taken = whole ? lock == nullptr || await_room_to_reply(call.node, wire::kHeaderBytes + data.size(),
                                                                      kFullBacklogBytes, *lock)
                             : reply_in_parts(call, data, *lock);
    if (!taken) {
        end_with_error(call, ending_ ? stopped()
                                     : Error(ErrorCode::disconnected,
                                             "the caller's node was lost, or took nothing, while the result was sent"));
        return {};
    }
    wire::FrameHeader answer = answer_to(call);
    answer.flags = whole ? 0 : wire::kParts;
    answer.status = static_cast<std::uint8_t>(ran);
    end_call(answer, whole ? data.whole() : Bytes());
    return {};
}

// Needs no memory but what the frame may take where it has to wait (send_or_cut).
void NodeCore::end_with_error(const wire::FrameHeader& call, const Error& error) noexcept {
    if ((call.flags & wire::kNoReply) != 0) return tell_of_failed_post(call, error);
    std::string with_type;
    try {
        if (!error.exception_type().empty())
            with_type = error.exception_type().substr(0, wire::kErrorTypeBytesMax) + '\0' + error.message();
    } catch (const std::bad_alloc&) {  // the message alone, then
    }
    const Bytes message = rove::as_bytes(with_type.empty() ? error.message() : with_type);
    wire::FrameHeader answer = answer_to(call);
    answer.flags = static_cast<std::uint8_t>(wire::kError | (with_type.empty() ? 0 : wire::kThrown));
    answer.status = static_cast<std::uint8_t>(error.code());
    end_call(answer, message.first(std::min(message.size(), wire::kErrorBytesMax)));
}

void NodeCore::tell_of_failed_post(const wire::FrameHeader& call, const Error& error) noexcept try {
    complaints_.say(name(), fmt::format("a post from {} failed: {}", who(call.node, {}), error.message()));
} catch (const std::bad_alloc&) {  // nobody waits for it
}

Status NodeCore::reply(const wire::FrameHeader& to, RanAs ran, const Pieces& data) {
    if (data.is_whole()) {
        Hold hold(*this);
        return end_with_reply(to, ran, data, &hold.lock());
    }
    ByteBuffer room;
    const bool in_parts = data.size() > wire::kPayloadBytesMax && to.node != id();
    const Pieces one = in_parts || data.size() > wire::kMessageBytesMax ? data : Pieces(data.joined(room));
    Hold hold(*this);
    return end_with_reply(to, ran, one, &hold.lock());
}

void NodeCore::reply_error(const wire::FrameHeader& to, const Error& error) {
    if (is_inherited()) return;  // the call is the parent's
    Hold hold(*this);
    end_with_error(to, error);
}

// Under the lock: a function may be forgotten when another package arrives. Bit 32 tells a handle, which may be 0, from none.
std::optional<std::uint64_t> NodeCore::find_function(std::string_view name) {
    Hold hold(*this);
    const code::Function* function = cache_->find(name);
    return function != nullptr ? std::optional(std::uint64_t{1} << 32U | function->handle) : std::nullopt;
}

std::optional<FunctionId> NodeCore::function_of(std::uint64_t handle) {
    if (handle >> 32U != 1) return std::nullopt;
    Hold hold(*this);
    const code::Function* function = cache_->by_handle(static_cast<std::uint32_t>(handle));
    return function != nullptr ? std::optional(function->id) : std::nullopt;
}

Status NodeCore::send_on(const Onward& onward) {
    Callee callee{.id = &onward.function};
    if (const Resident* own = Residents::find(onward.function)) {  // the next node may have it of its own, too
        callee = {.id = &own->id, .name = own->name, .own = true, .schema = own->schema};
        if (const detail::Callable* callable = detail::callable_of(own->entry))
            ROVE_CHECK(detail::complete(callee, *callable));
    }
    Hold hold(*this);
    if (onward.payload.size() > wire::kPayloadBytesMax)
        return fail(ErrorCode::invalid, "a payload of {} bytes is over the limit of {}", onward.payload.size(),
                    wire::kPayloadBytesMax);
    if (is_client(onward.node) || onward.node >= node_count())
        return fail(ErrorCode::invalid, "there is no node {}: there are {}", onward.node, node_count());
    if (onward.node == id()) return send_to_self(onward);
    PeerState* peer = routes_.to(onward.node);
    if (peer == nullptr) return tl::unexpected<Error>(sender_.absent(onward.node));
    const NodeId caller = onward.header.node;
    if ((onward.header.flags & wire::kNoReply) == 0 && routes_.is_home_of(caller) &&
        peer->sent_on.is_full_for(caller, onward.header.call))
        return fail(ErrorCode::overloaded,
                    "as many calls are on {} for callers of {} as may be at once: {} for one, {} for all", who(*peer),
                    name(), SentOn::kMaxOfCaller, SentOn::kMax);
    const std::shared_ptr<PackageStore> package = exchange_.package_with(onward.function);
    if (callee.package == nullptr) callee.package = &package;
    return send_call(*peer, callee, onward.header, onward.payload);
}

Status NodeCore::send_to_self(const Onward& onward) {
    wire::FrameHeader header = onward.header;
    const std::size_t bytes = bytes_waiting(wire::kHeaderBytes + sizeof(FunctionId) + onward.payload.size());
    if (local_bytes_ + bytes > kOutboxBytesMax)
        return fail(ErrorCode::overloaded, "{} bytes of calls to itself wait on {}, the most there may", local_bytes_,
                    name());
    header.kind = Kind::call;
    header.flags = static_cast<std::uint8_t>((header.flags & wire::kNoReply) | wire::kById);
    header.extra_bytes = sizeof(FunctionId);
    header.body_bytes = static_cast<std::uint32_t>(sizeof(FunctionId) + onward.payload.size());
    local_.push_back(waiting_frame(header, onward.function.raw(), onward.payload));
    local_bytes_ += bytes;
    lead_.wake();
    return {};
}

// The name and the code the first time, the handle ever after.
Status NodeCore::send_call(PeerState& peer, const Callee& callee, wire::FrameHeader header, Bytes payload) {
    header.kind = Kind::call;
    header.flags &= static_cast<std::uint8_t>(wire::kNoReply | wire::kParts);
    const auto sent_as = [&peer, &payload](std::size_t extra) {
        peer.counters.frame_bytes_last = static_cast<std::uint32_t>(wire::kHeaderBytes + extra + payload.size());
    };
    if (const auto bound = peer.bindings.handle_of(*callee.id)) {
        header.handle = *bound;
        sent_as(0);
        return sender_.send(peer, Traffic::calls, header, {}, payload);
    }
    peer.bindings.expect();
    wire::Either either{.resident = *callee.id, .shipped = {}, .schema = callee.schema};
    if (callee.shipped != nullptr) either.shipped = *callee.shipped;
    if (callee.shipped != nullptr && callee.package != nullptr) either.forms = detail::forms_of_one(**callee.package);
    Bytes named = callee.id->raw();
    std::uint8_t naming = wire::kById;
    if (callee.own) {
        naming = wire::kByEither;
        named = std::as_bytes(std::span(&either, 1));
    }
    header.flags |= naming;
    sent_as(named.size());
    PackageStore* package = callee.package != nullptr ? callee.package->get() : nullptr;
    // A program's own functions may be resident there: then its code is not sent before it is asked for.
    if (package == nullptr || peer.code_sent.contains(package->digest()) || (callee.own && peer.has_residents))
        return sender_.send(peer, Traffic::calls, header, named, payload);
    // Image first, so that the call can start; bitcode after the call, for the tier that follows, and among the calls: otherwise it
    // would overtake this one.
    ROVE_TRY(const bool image_sent, exchange_.send(peer, *package, Forms::image, true));
    bool bitcode_sent = false;
    if (!image_sent) {
        ROVE_TRY(bitcode_sent, exchange_.send(peer, *package, Forms::bitcode, true));
    }
    if (image_sent || bitcode_sent) peer.code_sent.insert(package->digest());
    ROVE_CHECK(sender_.send(peer, Traffic::calls, header, named, payload));
    if (image_sent) try {
            (void)exchange_.send(peer, *package, Forms::bitcode, false, Traffic::calls);
        } catch (const std::bad_alloc&) {  // the call has been sent, and its image: it runs
        }
    return {};
}

void NodeCore::bury(std::shared_ptr<fabric::Link> link) {
    if (link) buried_.push_back(std::move(link));
    housekeeping_due_ = {};
    housekeeping_in_ = 1;
}

// Where a step finds no memory it throws, and all of this is done once more in the next turn. So each step is harmless the second time, and
// none lets go of anything before what it was for has happened.
void NodeCore::clean_up(PeerState& peer) {
    peer.gone = peer.lost                                     ? peer.lost->message()
                : peer.link && peer.link->broken() != nullptr ? peer.link->broken()->message()
                                                              : "the link broke";
    log().info("{}: {} is gone: {}", name(), who(peer), peer.gone);
    const Error why(ErrorCode::disconnected, peer.gone);
    const Error not_sent(ErrorCode::disconnected,
                         fmt::format("{} went before the call was sent on to it{}", who(peer), because(peer.gone)));
    buried_.reserve(buried_.size() + 1);
    if (peer.link) take_last_replies(peer);
    calls_.fail_all(&peer,
                    Error(ErrorCode::disconnected,
                          fmt::format("{} went during the call; it may have run ({})", who(peer), peer.gone)),
                    [this](CallSlot& slot) {
                        node_lock_is_held();
                        slot.brings_memory = false;
                        call_ended(slot);
                    });
    const bool member = leave_routes(peer);
    memory_.free_all_of(peer.back);
    end_sent_on(peer, member, not_sent);
    exchange_.peer_left(peer);
    if (peer.hang_up) peer.hang_up(why);
    peer.hang_up = nullptr;
    peer.counters = counters_of(peer);
    bury(std::move(peer.link));
    staged_bytes_ -= peer.staged.clear();
    peer.forget_meeting(dropped_);
    ++links_version_;
    lead_.forget_links();
    lead_.tell_waiting();
}

// Nothing is sent to it any more. Replies for callers at a member wait until it is met again. True: it was a member.
bool NodeCore::leave_routes(PeerState& peer) {
    untaken_.forget(&peer);
    const bool is_there = peer.member && routes_.member(peer.id) == &peer;
    if (!peer.left_as_member) peer.left_as_member = is_there;
    if (is_there) {
        absent_.lost(peer.id, peer.process, who(peer) + " cannot be reached" + because(peer.gone));
        if (peer.link) keep_replies_of(peer);
    }
    routes_.leave(peer);
    return *peer.left_as_member;
}

// The calls of others that were sent on to it, or should have been, and its own. What a member has taken it answers by itself, or by those
// that it sends it on to.
void NodeCore::end_sent_on(PeerState& peer, bool member, const Error& not_sent) {
    const Error not_taken(ErrorCode::disconnected, fmt::format("{} went while the call was on it; it may have run{}",
                                                               who(peer), because(peer.gone)));
    const auto end = [&](const Forwarded& call) noexcept {
        node_lock_is_held();
        end_with_error(header_of(call), not_taken);
    };
    take_unsent(peer, [&](const wire::FrameHeader& call) noexcept {
        node_lock_is_held();
        end_with_error(call, not_sent);
    });
    if (!member) {
        peer.sent_on.take_all(end);
    } else {
        if (peer.link) peer.sent_on.take_untaken(peer.link->lines_credited(Traffic::calls), end);
        absent_.had_taken(peer.id, peer.sent_on);
    }
    for (PeerState* const other : routes_.members())
        if (other != nullptr) other->sent_on.left(peer.back);
    absent_.caller_left(peer.back);
    end_orphans();
}

Peer::Counters NodeCore::counters_of(const PeerState& peer) const {
    Peer::Counters sum = peer.counters;
    if (peer.link) {
        const fabric::Link::Counters& now = peer.link->counters();
        sum.frames_sent += now.frames_sent;
        sum.bytes_sent += now.bytes_sent;
        sum.frames_received += now.frames_received;
    }
    return sum;
}

bool NodeCore::knows_owner(NodeId owner) {
    if (owner == id()) return true;
    Hold hold(*this);
    return std::any_of(peers_.begin(), peers_.end(),
                       [owner](const auto& peer) { return peer->link && peer->back == owner; });
}

std::shared_ptr<PeerState> NodeCore::peer_of(NodeId node) {
    Hold hold(*this);
    PeerState* const peer = routes_.to(node);
    return peer != nullptr ? peer->shared_from_this() : nullptr;
}

std::size_t NodeCore::replies_kept() {
    Hold hold(*this);
    return absent_.kept_bytes() + absent_.kept_errors();
}

std::size_t NodeCore::peers_known() {
    Hold hold(*this);
    return peers_.size();
}

Peer::Counters NodeCore::counters(PeerState& peer) {
    Hold hold(*this);
    return counters_of(peer);
}

}  // namespace rove
