// The members that a node knows: who has which id, by which key, at which address, and whether it lives.
//
// Threads: the control thread's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "node/control/identity.hpp"
#include "node/core.hpp"
#include "wire/control.hpp"

namespace rove::control {

// Ids over the highest known that a member may tell of: joins that this node has not heard of yet.
inline constexpr NodeId kIdsAheadMax = 64;

struct MemberEntry {
    enum class State : std::uint8_t {
        unused,
        joining,  // has an id from this node, and no lane yet
        living,   // there is a link to it
        lost,     // there is none now, and the process may live
        gone      // it left, or its address is nobody's or another process's
    } state = State::unused;
    std::string address;
    wire::control::PublicKey key;
    std::uint32_t generation = 0;
    std::weak_ptr<PeerState> peer;  // that stands for it, now or last
    std::uint64_t meeting = 0;      // by which `peer` was met last
    bool healing = false;           // somebody tries to meet it again
    unsigned incoming = 0;          // meetings under way that it opened

    [[nodiscard]] bool is_there() const { return state == State::living || state == State::lost; }
};

class Members {
public:
    // By id; null: nothing is known of it.
    [[nodiscard]] MemberEntry* find(NodeId id);
    // The member at an address that has not gone; kNoNode: none.
    [[nodiscard]] NodeId at(std::string_view address) const;
    // That a Peer stands for; kNoNode: none.
    [[nodiscard]] NodeId of(const std::shared_ptr<PeerState>& peer) const;
    // The lowest id of those that are there; kNoNode: none.
    [[nodiscard]] NodeId lowest() const;
    // One more than the highest id that was ever proven to be somebody's.
    [[nodiscard]] std::uint32_t count() const { return count_; }

    // An id for a process that joins at that address: that of the member that was there, else the lowest that nobody had, else
    // one of who is gone. kNoNode: there are as many as there may be. The entry is `joining`, its generation a new one.
    [[nodiscard]] NodeId give(const std::string& address, const wire::control::PublicKey& key, NodeId mine);
    // The join was not finished: whoever had the id before it has gone.
    void take_back(NodeId id);
    // From here on it counts. Precondition: its key was proven.
    void set(const wire::control::Member& member, MemberEntry::State state);
    // What another member says: taken where nothing newer is known of a member that is not there. True: it was news.
    bool learn(const wire::control::Member& member);

    // All that have not gone, but `except`.
    [[nodiscard]] std::vector<wire::control::Member> list(NodeId except) const;
    [[nodiscard]] std::size_t size() const { return entries_.size(); }

private:
    MemberEntry& entry(NodeId id);
    std::vector<MemberEntry> entries_;
    std::uint32_t count_ = 0;
};

}  // namespace rove::control
