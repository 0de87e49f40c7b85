// The peers of an engine, as all its parts that visit them see them. Only Peers (engine/peers.hpp) adds and removes.
//
// Threads: under the engine's lock. An iterator or a place is valid until the list changes, which may happen whenever the lock is released.
//
// Invariants: the peers are in any order, each once, and places_ has the place of each. Those of warm() are among them.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lead/engine_lock.hpp"
#include "peer/warm_peers.hpp"

namespace rove {

class PeerList {
public:
    using Iterator = std::vector<std::shared_ptr<PeerState>>::const_iterator;

    [[nodiscard]] Iterator begin() const REQUIRES(lock_of<EngineLock>) { return all_.begin(); }
    [[nodiscard]] Iterator end() const REQUIRES(lock_of<EngineLock>) { return all_.end(); }
    [[nodiscard]] std::size_t size() const REQUIRES(lock_of<EngineLock>) { return all_.size(); }
    [[nodiscard]] const std::shared_ptr<PeerState>& operator[](std::size_t place) const REQUIRES(lock_of<EngineLock>) {
        return all_[place];
    }

    // Null: it is not among these any more. `peer` may point to one that has been destroyed.
    [[nodiscard]] std::shared_ptr<PeerState> find(const PeerState* peer) const REQUIRES(lock_of<EngineLock>) {
        const auto found = places_.find(peer);
        return found != places_.end() ? all_[found->second] : nullptr;
    }

    // Those that a leader looks at.
    [[nodiscard]] WarmPeers& warm() { return warm_; }
    [[nodiscard]] const WarmPeers& warm() const { return warm_; }

    // Throws std::bad_alloc, and nothing has changed.
    void add(std::shared_ptr<PeerState> peer) REQUIRES(lock_of<EngineLock>) {
        warm_.make_room_for(all_.size() + 1);
        if (all_.capacity() < all_.size() + 1) all_.reserve(2 * (all_.size() + 1));
        places_.emplace(peer.get(), all_.size());
        peer->warm_peers_ = &warm_;
        all_.push_back(std::move(peer));
    }
    // The last one takes its place.
    void remove(std::size_t place) REQUIRES(lock_of<EngineLock>) {
        warm_.remove(*all_[place]);
        all_[place]->warm_peers_ = nullptr;
        places_[all_.back().get()] = place;
        places_.erase(all_[place].get());
        std::swap(all_[place], all_.back());
        all_.pop_back();
    }

private:
    std::vector<std::shared_ptr<PeerState>> all_ GUARDED_BY(lock_of<EngineLock>);
    std::unordered_map<const PeerState*, std::size_t> places_ GUARDED_BY(lock_of<EngineLock>);  // in all_
    WarmPeers warm_;
};

}  // namespace rove
