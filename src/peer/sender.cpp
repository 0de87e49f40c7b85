#include "peer/sender.hpp"

#include <cstring>
#include <utility>

#include "peer/names.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

// A call that was sent on for someone else.
bool is_sent_on(const PeerState& peer, const wire::FrameHeader& header) REQUIRES(lock_of<EngineLock>) {
    return header.kind == Kind::call && (header.flags & wire::kNoReply) == 0 && header.node != peer.my_id();
}
Forwarded forwarded(const wire::FrameHeader& header, std::uint64_t position) {
    return {position, header.node, header.call, header.generation, header.hops};
}

}  // namespace

Status Sender::send(PeerState& peer, Traffic traffic, wire::FrameHeader header, Bytes extra, Bytes payload) {
    if (!peer.link() || peer.lost())
        return fail(ErrorCode::disconnected, "{} is gone{}", who(peer),
                    because(peer.lost() ? peer.lost()->message() : peer.gone()));
    header.body_bytes = static_cast<std::uint32_t>(extra.size() + payload.size());
    header.extra_bytes = static_cast<std::uint16_t>(extra.size());
    const std::size_t bytes = wire::kHeaderBytes + header.body_bytes;
    Outbox& outbox = peer.outbox_of(traffic);
    if (outbox.is_empty() && !(peer.sends.has_open_frame() && traffic == Traffic::calls)) {
        if (std::byte* frame = peer.link()->reserve(traffic, bytes)) {
            fill_body(frame, extra, payload);
            peer.link()->publish(traffic, header);
            if (is_sent_on(peer, header)) remember_sent_on(peer, header, peer.link()->lines_published(Traffic::calls));
            if (peer.link()->by_messages()) wake_();
            return {};
        }
    }
    const std::size_t waiting = bytes_waiting(bytes);
    if (waiting_bytes_ + waiting > kAllOutboxBytesMax) cut_whom_most_waits_for(waiting);
    if (outbox.is_full_for(waiting))
        return fail(ErrorCode::overloaded, "{} does not take its frames: {} bytes wait for it, the most there may",
                    who(peer), outbox.bytes());
    outbox.push(header, extra, payload);
    peer.link()->warm();
    if (is_sent_on(peer, header)) remember_sent_on(peer, header, SentOn::kWaits);
    wake_();
    return {};
}

// All peers together take too little. The one for which most waits makes way, and not the one that is next. What waits for those that were
// cut off already is dropped with them.
void Sender::cut_whom_most_waits_for(std::size_t more) {
    PeerState* most = nullptr;
    std::size_t stays = 0;
    for (const auto& peer : peers_) {
        if (!peer->linked()) continue;
        stays += peer->bytes_waiting_in_all();
        if (most == nullptr || peer->bytes_waiting_in_all() > most->bytes_waiting_in_all()) most = peer.get();
    }
    if (stays + more <= kAllOutboxBytesMax) return;
    most->link()->break_with(
        Error(ErrorCode::overloaded,
              fmt::format("{} bytes wait for all peers of {}, the most there may, and {} of them for {}",
                          waiting_bytes_, name_(), most->bytes_waiting_in_all(), who(*most))));
}

// Not for a client that has gone.
void Sender::remember_sent_on(PeerState& peer, const wire::FrameHeader& header, std::uint64_t position) const {
    const bool passes_here = routes_.is_home_of(header.node);
    if (passes_here && is_client(header.node) && !routes_.has_client(header.node)) return;
    peer.sends.sent_on.add(forwarded(header, position), passes_here);
}

unsigned Sender::flush(PeerState& peer) {
    unsigned sent = 0;
    for (const Traffic traffic : {Traffic::prompt, Traffic::calls}) {
        Outbox& outbox = peer.outbox_of(traffic);
        while (!outbox.is_empty() && peer.link() && !(peer.sends.has_open_frame() && traffic == Traffic::calls)) {
            const ByteBuffer& waiting = outbox.front();
            std::byte* frame = peer.link()->reserve(traffic, waiting.size());
            if (frame == nullptr) break;
            wire::FrameHeader header;
            std::memcpy(&header, waiting.data(), sizeof header);
            fill_body(frame, {}, Bytes(waiting).subspan(wire::kHeaderBytes));
            peer.link()->publish(traffic, header);
            if (is_sent_on(peer, header))
                peer.sends.sent_on.sent(forwarded(header, peer.link()->lines_published(Traffic::calls)));
            outbox.pop();
            ++sent;
        }
    }
    return sent;
}

// For frames that others wait for: if one can be neither sent nor queued, for lack of room or memory, cuts the link, whose end informs them.
bool Sender::send_or_cut(PeerState& peer, const wire::FrameHeader& header, Bytes extra, Bytes payload) noexcept try {
    Status sent = send(peer, Traffic::prompt, header, extra, payload);
    if (!sent && sent.error().code() == ErrorCode::overloaded && peer.link())
        peer.link()->break_with(std::move(sent.error()));
    return sent.has_value();
} catch (const std::bad_alloc&) {
    if (peer.link()) peer.link()->break_with(no_memory());
    return false;
}

// Passes on the answer to a call that was sent on, from the peer to which it was sent or, if that one sent it on again, from another member.
void Sender::pass_reply_on(PeerState& from, const wire::Frame& reply) {
    const wire::FrameHeader& header = reply.header;
    const bool from_there = from.sends.sent_on.answered(header.node, header.call, header.generation);
    if (!from_there || header.hops > 1) forget_sent_on(header);
    route(reply);
}

// A call that was sent on more than once may be among those of several members.
void Sender::forget_sent_on(const wire::FrameHeader& call) {
    forget_sent_on_here(call);
    absent_.answered(call);
    others_.leave_to_all(LeftForEngine::What::answered, call);
}

void Sender::forget_sent_on_here(const wire::FrameHeader& call) {
    for (PeerState* const member : routes_.members())
        if (member != nullptr) (void)member->sends.sent_on.answered(call.node, call.call, call.generation);
}

// An answer to a node that cannot be reached is lost if there is no memory to keep it.
void Sender::route(const wire::Frame& frame, unsigned next_engine) noexcept try {
    PeerState* peer = routes_.to(frame.header.node);
    const wire::FrameHeader header = peer != nullptr ? peer->addressed(frame.header, routes_.id()) : frame.header;
    if (peer != nullptr && (send_or_cut(*peer, header, frame.extra, frame.payload) || !peer->is_member())) return;
    // The home of its caller may be met again: a reply waits for that. Otherwise its caller is gone, and so is the call.
    if (!wire::is_answer(header.kind)) return;
    if (const auto engine = peer == nullptr ? routes_.with_way(header.node) : std::nullopt) {
        if (!others_.leave(*engine, LeftForEngine::What::to_caller, frame))
            complaints_.say(name_(), fmt::format("the answer to a call of {} is lost: too many wait to be passed on",
                                                 who(header.node, {})));
        return;
    }
    const NodeId home = home_of(header.node);
    if (peer != nullptr)
        absent_.lost(home, peer->identity().process, who(*peer) + " cannot be reached");  // clean_up() says why
    if (home == routes_.id() || (home & kForeignBit) != 0) return;
    const auto kept = absent_.keep(home, header, frame.extra, frame.payload, Clock::now());
    if (kept == AbsentMembers::Kept::full)
        return complaints_.say(name_(),
                               fmt::format("the answer to a call of {} is lost: as many answers for node {} as "
                                           "may wait already, until it is reached",
                                           who(header.node, {}), home));
    if (kept == AbsentMembers::Kept::unknown && !route_downwards(frame, next_engine))
        complaints_.say(name_(),
                        fmt::format("the answer to a call of {} is lost: node {} has never been met, and nobody is "
                                    "known who has",
                                    who(header.node, {}), home));
} catch (const std::bad_alloc&) {  // the answer is lost
}

// A reply for a caller whose node this one has never heard of, because that one has just joined: members with lower ids have met
// it. Each passes it on downwards, so it ends. Engines are tried in the order of their numbers, so that ends as well.
bool Sender::route_downwards(const wire::Frame& frame, unsigned next_engine) {
    for (NodeId lower = 0; lower < routes_.id(); ++lower)
        if (PeerState* const peer = routes_.member(lower); peer != nullptr && peer->linked())
            return send_or_cut(*peer, frame.header, frame.extra, frame.payload);
    const auto engine = others_.with_lower(routes_.id(), next_engine);
    return engine && others_.leave(*engine, LeftForEngine::What::to_lower, frame);
}

// Why a member cannot be reached.
Error Sender::absent(NodeId node) const {
    return {ErrorCode::disconnected,
            absent_.why(node).value_or(fmt::format("node {} has not been met, or has left", node))};
}

}  // namespace rove
