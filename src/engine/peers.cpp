#include "engine/peers.hpp"

#include <optional>

#include "base/log.hpp"
#include "peer/names.hpp"

namespace rove {
Result<Peers::Adopted> Peers::adopt(Meeting meeting, std::unique_ptr<fabric::Link> opened,
                                    std::shared_ptr<PeerState> old) {
    const Hold hold(lead_.mutex());
    std::unique_ptr<fabric::Link> link = std::move(opened);  // ends under the lock, wherever this ends
    if (old && old->engine != &engine_)
        return fail(ErrorCode::overloaded, "{} has met this peer by another engine before; try again", name_());
    std::shared_ptr<PeerState> peer = std::move(old);
    if (!peer && meeting.peer.member) peer = that_was_member(meeting.peer.id);
    if (!peer) peer = std::make_shared<PeerState>(sender_.waiting_bytes(), &engine_);
    const bool is_new = all_.find(peer.get()) == nullptr;
    std::optional<PeerPlace> place;
    if (is_new && !place.emplace(places_).is_taken())
        return fail(ErrorCode::overloaded,
                    "{} has {} peers, the most that it has at once; try again when some have left", name_(), kPeersMax);
    if (peer->linked() && !meeting.replace) return Adopted{peer, peer->meeting(), false};
    if (peer->linked()) peer->lose(Error(ErrorCode::disconnected, "it was met again"));
    if (peer->link()) link_ends_.clean_up(*peer);
    if (PeerState* const former = meeting.peer.member ? routes_.member(meeting.peer.id) : nullptr) {
        former->lose(Error(ErrorCode::disconnected, "another process took its place"));  // before its end was seen
        link_ends_.clean_up(*former);
    }
    const NodeId name = routes_.name_for(meeting.peer, peer->back());
    if (is_new) {
        all_.add(peer);  // before anything points to it, and memory is too short for more
        place->keep();
    }
    link->settled();
    peer->meet(std::move(meeting.peer), name, std::move(link), ++meetings_, std::move(meeting.hang_up));
    all_.warm().add(*peer);
    try {
        enter(*peer, meeting.resident);
        log().info("{}: met {} ({} lane)", name_(), who(*peer), fabric::name_of(peer->lane()));
    } catch (const std::bad_alloc&) {
        link_ends_.lose(*peer, Error(ErrorCode::overloaded, "no memory"));
        throw;
    }
    lead_.wake();
    return Adopted{peer, peer->meeting(), true};
}

// The peer that was the member of that id, and has no link now; null: none.
std::shared_ptr<PeerState> Peers::that_was_member(NodeId id) const {
    const auto found = members_.find(id);
    std::shared_ptr<PeerState> peer = found != members_.end() ? all_.find(found->second) : nullptr;
    return peer && peer->is_member() && peer->id() == id && !peer->link() ? peer : nullptr;
}

// Makes the peer reachable by its name, and sends it the frames that were kept for it.
void Peers::enter(PeerState& peer, const std::vector<Digest>& resident) {
    peer.code.sent.insert(resident.begin(), resident.end());
    routes_.enter(peer);
    if (!peer.is_member()) return;
    members_[peer.id()] = &peer;
    AbsentMembers::Met kept_for = absent_.met(peer.id(), peer.identity().process);
    peer.sends.sent_on = std::move(kept_for.sent_on);
    for (const ByteBuffer& kept : kept_for.frames) {
        const wire::Frame frame = wire::frame_in(kept);
        sender_.send_or_cut(peer, frame.header, frame.extra, frame.payload);
    }
    link_ends_.end_orphans();
}

bool Peers::linked(const PeerState& peer) const {
    const Hold hold(lead_.mutex());
    return peer.linked();
}

void Peers::lose(const std::shared_ptr<PeerState>& peer, std::uint64_t meeting, Error why) {
    const Hold hold(lead_.mutex());
    if (!peer->lost() && peer->meeting() == meeting) link_ends_.lose(*peer, std::move(why));
}

void Peers::member_expected(NodeId member, const AbsentMembers::Process& process, const std::string& why) {
    const Hold hold(lead_.mutex());
    // A link that is still there is one that ends: link_ends_.clean_up() says why.
    if (routes_.member(member) == nullptr) absent_.expected(member, process, why);
    link_ends_.end_orphans();
}

void Peers::member_gone(NodeId member, const std::string& why) {
    const Hold hold(lead_.mutex());
    absent_.gone(member, why, Clock::now());
    link_ends_.end_orphans();
    lead_.wake();  // it drops what is kept for the member in time
}

Result<std::shared_ptr<PeerState>> Peers::linked(NodeId to) const {
    const Hold hold(lead_.mutex());
    if (PeerState* const found = routes_.to(to); found != nullptr && found->back() == to)
        return found->shared_from_this();
    if (is_client(to))
        return fail(ErrorCode::invalid, "{} has no link to client {:x}: only the node that a client met can call it",
                    name_(), to);
    if (to < routes_.node_count()) return tl::unexpected<Error>(sender_.absent(to));
    return fail(ErrorCode::invalid, "{} knows no node {}: there are {}", name_(), to, routes_.node_count());
}

std::shared_ptr<PeerState> Peers::linked_at(std::string_view address) const {
    const Hold hold(lead_.mutex());
    PeerState* const found = routes_.foreign_at(address);  // a member's may be its own word: the control plane knows
    return found != nullptr && found->linked() ? found->shared_from_this() : nullptr;
}

bool Peers::knows_owner(NodeId owner) const {
    if (owner == routes_.id()) return true;
    const Hold hold(lead_.mutex());
    const PeerState* const found = routes_.to(owner);
    return found != nullptr && found->back() == owner;
}

bool Peers::reaches(NodeId node, std::string_view address) const {
    const Hold hold(lead_.mutex());
    const PeerState* peer = routes_.member(node);
    return peer != nullptr && peer->identity().address == address;
}

std::size_t Peers::count() const {
    const Hold hold(lead_.mutex());
    return all_.size();
}

std::vector<std::shared_ptr<PeerState>> Peers::with_posts() const {
    const Hold hold(lead_.mutex());
    std::vector<std::shared_ptr<PeerState>> found;
    for (const auto& peer : all_)
        if (peer->linked() && peer->sends.has_posts()) found.push_back(peer);
    return found;
}

NodeDescription Peers::describe(const PeerState& peer) const {
    const Hold hold(lead_.mutex());
    const PeerIdentity& is = peer.identity();
    return {peer.id(), is.address, is.triple, std::string(fabric::name_of(peer.lane())), is.node_count};
}

NodeId Peers::id_of(const PeerState& peer) const {
    const Hold hold(lead_.mutex());
    return peer.id();
}

fabric::Lane Peers::lane_of(const PeerState& peer) const {
    const Hold hold(lead_.mutex());
    return peer.lane();
}

Peer::Counters Peers::counters(const PeerState& peer) const {
    const Hold hold(lead_.mutex());
    return peer.all_counters();
}

// The list refers to it, and the caller.
bool Peers::is_unneeded(const std::shared_ptr<PeerState>& peer) {
    return !peer->link() && !peer->sends.has_begun_frames() && (is_client(peer->id()) || peer.use_count() == 2);
}

bool Peers::remove_unneeded(std::size_t index, const std::shared_ptr<PeerState>& peer) {
    if (!is_unneeded(peer)) return false;
    all_.remove(index);
    places_.give_back();
    return true;
}

void Peers::forget_meetings() {
    for (const auto& peer : all_) (void)peer->end_meeting(link_ends_.dropped());
}

}  // namespace rove
