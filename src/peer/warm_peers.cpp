#include "peer/warm_peers.hpp"

#include <algorithm>
#include <utility>

namespace rove {

void WarmPeers::make_room_for(std::size_t peers) {
    if (peers_.capacity() < peers) peers_.reserve(2 * peers);
}

void WarmPeers::add(PeerState& peer) noexcept {
    if (peer.warm_at_ != PeerState::kNotWarm) return;
    peer.warm_at_ = peers_.size();
    peers_.push_back(&peer);
    ++version_;
}

// The last one takes its place.
void WarmPeers::remove(PeerState& peer) noexcept {
    const std::size_t place = std::exchange(peer.warm_at_, PeerState::kNotWarm);
    if (place == PeerState::kNotWarm) return;
    if (peers_.back() != &peer) {
        peers_[place] = peers_.back();
        peers_[place]->warm_at_ = place;
    }
    peers_.pop_back();
    ++version_;
}

void WarmPeers::cool_quiet(fabric::Fabric& fabric) {
    if (peers_.size() <= kWarmMax) return;
    const TimePoint now = Clock::now();
    std::vector<fabric::Link*> quiet;
    for (PeerState* const peer : peers_)
        if (peer->link() && !peer->note_traffic() && may_cool(*peer, now)) quiet.push_back(peer->link().get());
    fabric.cool(quiet);
    for (std::size_t place = peers_.size(); place > 0; --place)
        if (PeerState& peer = *peers_[place - 1]; !peer.link() || peer.link()->is_cold()) remove(peer);
}

PeerNeeds WarmPeers::needs(Takes takes, TimePoint now) {
    PeerNeeds all;
    for (PeerState* const peer : peers_) {
        if (MailboxReader* const reader = peer->calls.reader()) reader->give_back_if_long();
        all.add(needs_of(*peer, takes, now));
    }
    return all;
}

bool WarmPeers::any_waits_for_room() const {
    return std::ranges::any_of(peers_, [](const PeerState* peer) {
        engine_lock_is_held();
        return waits_for_room(*peer);
    });
}

bool WarmPeers::any_has_lost_its_bell(TimePoint now) const {
    return std::ranges::any_of(peers_, [now](PeerState* peer) {
        engine_lock_is_held();
        const PeerNeeds needs = needs_of(*peer, Takes::all, now);
        return needs.may_lose_bell && needs.now;
    });
}

bool WarmPeers::any_needs_more_than(const PeerState& read, TimePoint now) const {
    return std::ranges::any_of(peers_, [&read, now](PeerState* peer) {
        engine_lock_is_held();
        if (peer != &read) return has_work(*peer);
        const PeerNeeds needs = needs_of(*peer, Takes::prompt, now);
        return needs.now || needs.room;
    });
}

void WarmPeers::await(std::vector<fabric::AwaitedSignal>& signals, Takes takes) const {
    for (const PeerState* const peer : peers_)
        if (peer->link()) peer->link()->await(signals, takes == Takes::all && takes_calls(*peer));
}

void WarmPeers::add_links(std::vector<std::shared_ptr<fabric::Link>>& links) const {
    for (const PeerState* const peer : peers_)
        if (peer->link()) links.push_back(peer->link());
}

}  // namespace rove
