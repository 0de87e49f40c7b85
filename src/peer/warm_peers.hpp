// WarmPeers: the peers that a leader looks at, because their links are not cold (fabric/cold_links.hpp), and what it owes them together.
//
// Threads: under the engine's lock. Only the leader takes any away, or makes any cold; a place is valid until that happens, or until the lock is
// released.
//
// Invariants: a peer whose link is not cold is among these, once, or the fabric has yet to report it (take_warmed); so may be one
// that has no link. add() needs no memory, because make_room_for() has counted all peers of the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lead/spin.hpp"
#include "peer/peer_needs.hpp"

namespace rove {

// Where no more than this many are looked at in each turn, they stay warm, however quiet they are: to learn of their frames by the board would
// cost more.
inline constexpr std::size_t kWarmMax = 4;

// Once a turn: those whose links were cold and are no longer are among their engine's WarmPeers from here on.
inline void take_warmed(fabric::Fabric& fabric) noexcept REQUIRES(lock_of<EngineLock>) {
    while (fabric.has_warmed())
        if (fabric::LinkHolder* const holder = fabric.take_warmed().holder()) holder->link_warmed();
}

class WarmPeers {
public:
    // ---- which they are, in any order
    [[nodiscard]] auto begin() const REQUIRES(lock_of<EngineLock>) { return peers_.begin(); }
    [[nodiscard]] auto end() const REQUIRES(lock_of<EngineLock>) { return peers_.end(); }
    [[nodiscard]] std::size_t size() const REQUIRES(lock_of<EngineLock>) { return peers_.size(); }
    [[nodiscard]] PeerState& operator[](std::size_t place) const REQUIRES(lock_of<EngineLock>) {
        return *peers_[place];
    }
    // Changes with them.
    [[nodiscard]] std::uint64_t version() const REQUIRES(lock_of<EngineLock>) { return version_; }

    // ---- how they change
    // Throws std::bad_alloc, and nothing has changed.
    void make_room_for(std::size_t peers) REQUIRES(lock_of<EngineLock>);
    // Nothing happens where it is there.
    void add(PeerState& peer) noexcept REQUIRES(lock_of<EngineLock>);
    void remove(PeerState& peer) noexcept REQUIRES(lock_of<EngineLock>);
    // Links over which nothing has come or gone since this was called last are cold from here on, unless there are few.
    void cool_quiet(fabric::Fabric& fabric) REQUIRES(lock_of<EngineLock>);

    // ---- what a leader owes them
    // For the leader: it takes the mailboxes back from runs whose functions have run for too long.
    [[nodiscard]] PeerNeeds needs(Takes takes, TimePoint now) REQUIRES(lock_of<EngineLock>);
    // Whether frames wait for room that peers give without a signal.
    [[nodiscard]] bool any_waits_for_room() const REQUIRES(lock_of<EngineLock>);
    // Whether there is something to do that only a bell would have announced, and the bell may have been taken.
    [[nodiscard]] bool any_has_lost_its_bell(TimePoint now) const REQUIRES(lock_of<EngineLock>);
    // Whether there is anything to do but the calls of that peer, which the leader reads itself.
    [[nodiscard]] bool any_needs_more_than(const PeerState& read, TimePoint now) const REQUIRES(lock_of<EngineLock>);
    // Adds the signals of all frames that the leader would take. A parked call is there already: what it waits for arrives among replies, or by
    // a wake().
    void await(std::vector<fabric::AwaitedSignal>& signals, Takes takes) const REQUIRES(lock_of<EngineLock>);
    // Adds the links on which await() depends.
    void add_links(std::vector<std::shared_ptr<fabric::Link>>& links) const REQUIRES(lock_of<EngineLock>);

private:
    std::vector<PeerState*> peers_ GUARDED_BY(lock_of<EngineLock>);
    std::uint64_t version_ GUARDED_BY(lock_of<EngineLock>) = 0;
};

}  // namespace rove
