// The peers of an engine, as all its parts that visit them see them. Only Peers (engine/peers.hpp) adds and removes.
//
// Threads: under the engine's lock. An iterator or a place is valid until the list changes, which may happen whenever the lock is released.
//
// Invariants: the peers are in the order in which they were added. Those of warm() are among them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
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
        const auto found = std::ranges::find(all_, peer, &std::shared_ptr<PeerState>::get);
        return found != all_.end() ? *found : nullptr;
    }

    // Those that a leader looks at.
    [[nodiscard]] WarmPeers& warm() { return warm_; }
    [[nodiscard]] const WarmPeers& warm() const { return warm_; }

    void add(std::shared_ptr<PeerState> peer) REQUIRES(lock_of<EngineLock>) {
        warm_.make_room_for(all_.size() + 1);
        peer->warm_peers_ = &warm_;
        all_.push_back(std::move(peer));
    }
    void remove(std::size_t place) REQUIRES(lock_of<EngineLock>) {
        warm_.remove(*all_[place]);
        all_[place]->warm_peers_ = nullptr;
        all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(place));
    }

private:
    std::vector<std::shared_ptr<PeerState>> all_ GUARDED_BY(lock_of<EngineLock>);
    WarmPeers warm_;
};

}  // namespace rove
