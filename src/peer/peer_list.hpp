// The peers of an engine, as all its parts that visit them see them. Only Peers (engine/peers.hpp) adds and removes.
//
// Threads: under the engine's lock. An iterator or a place is valid until the list changes, which may happen whenever the lock is released.
//
// Invariants: the peers are in the order in which they were added. A peer whose link is not cold (fabric::Fabric::cool) is among warm(), once, or
// the fabric has yet to report it; so is for some time one that has no link.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lead/engine_lock.hpp"
#include "peer/peer_state.hpp"

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

    // Those that a leader looks at, in any order. Only the leader takes any away.
    [[nodiscard]] const std::vector<PeerState*>& warm() const REQUIRES(lock_of<EngineLock>) { return warm_; }
    // Changes with warm().
    [[nodiscard]] std::uint64_t warm_version() const REQUIRES(lock_of<EngineLock>) { return warm_version_; }

    void add(std::shared_ptr<PeerState> peer) REQUIRES(lock_of<EngineLock>) {
        if (warm_.capacity() <= all_.size()) warm_.reserve(2 * all_.size() + 1);  // so that add_warm() needs no memory
        all_.push_back(std::move(peer));
    }
    void remove(std::size_t place) REQUIRES(lock_of<EngineLock>) {
        drop_warm_if([gone = all_[place].get()](const PeerState& peer) { return &peer == gone; });
        all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(place));
    }
    // Precondition: it was added.
    void add_warm(PeerState& peer) noexcept REQUIRES(lock_of<EngineLock>) {
        if (std::exchange(peer.is_among_warm_, true)) return;
        warm_.push_back(&peer);
        ++warm_version_;
    }
    // Takes those away from warm() of which `is_cold` is true. For the leader.
    template <typename IsCold>
    void drop_warm_if(const IsCold& is_cold) REQUIRES(lock_of<EngineLock>) {
        const auto gone = std::remove_if(warm_.begin(), warm_.end(), [&is_cold](PeerState* peer) {
            engine_lock_is_held();
            if (!is_cold(*peer)) return false;
            peer->is_among_warm_ = false;
            return true;
        });
        if (gone == warm_.end()) return;
        warm_.erase(gone, warm_.end());
        ++warm_version_;
    }

private:
    std::vector<std::shared_ptr<PeerState>> all_ GUARDED_BY(lock_of<EngineLock>);
    std::vector<PeerState*> warm_ GUARDED_BY(lock_of<EngineLock>);
    std::uint64_t warm_version_ GUARDED_BY(lock_of<EngineLock>) = 0;
};

}  // namespace rove
