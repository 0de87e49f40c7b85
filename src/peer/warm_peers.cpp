#include "peer/warm_peers.hpp"

#include <algorithm>
#include <utility>

namespace rove {

void WarmPeers::make_room_for(std::size_t peers) {
    if (peers_.capacity() < peers) peers_.reserve(2 * peers);
}

void WarmPeers::add(PeerState& peer) noexcept {
    if (std::exchange(peer.is_warm_, true)) return;
    peers_.push_back(&peer);
    ++version_;
}

template <typename Gone>
void WarmPeers::remove_if(const Gone& gone) noexcept {
    const auto removed = std::erase_if(peers_, [&gone](PeerState* peer) {
        engine_lock_is_held();
        if (!gone(*peer)) return false;
        peer->is_warm_ = false;
        return true;
    });
    if (removed > 0) ++version_;
}

void WarmPeers::remove(const PeerState& peer) noexcept {
    remove_if([&peer](const PeerState& each) { return &each == &peer; });
}

void WarmPeers::cool_quiet(fabric::Fabric& fabric) {
    if (peers_.size() <= kWarmMax) return;
    const TimePoint now = Clock::now();
    std::vector<fabric::Link*> quiet;
    for (PeerState* const peer : peers_)
        if (peer->link() && !peer->note_traffic() && may_cool(*peer, now)) quiet.push_back(peer->link().get());
    fabric.cool(quiet);
    remove_if([](const PeerState& peer) {
        engine_lock_is_held();
        return !peer.link() || peer.link()->is_cold();
    });
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
