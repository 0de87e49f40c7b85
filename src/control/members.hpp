// The members that a node knows: their ids, keys and addresses, and whether they live.
//
// Threads: the control thread's.
//
// Invariants: entries are neither moved nor removed, so pointers to them stay valid. There are at most kMembersMax, so all fit into one list. An id
// whose state is `joining` has `former`, to which take_back() returns. A process's claim is accepted unproven (Trust::none) in no state but
// `joining`, or if nothing better was ever known of the id.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "control/identity.hpp"
#include "engine/peers.hpp"
#include "wire/control.hpp"

namespace rove::control {

// Ids from the count on that may be accepted from another member's word, in a list or a certificate: joins of which this node has not been
// informed yet. So one such word raises the count by 64 at most, and costs 64 entries of some 200 bytes.
inline constexpr NodeId kIdsAheadMax = 64;

struct MemberEntry {
    enum class State : std::uint8_t {
        unused,   // nothing was ever known of the id; an entry that has left this state does not return to it
        joining,  // has an id from this node, and no lane yet
        living,   // there is a link to it
        lost,     // there is no link now, and the process may live
        gone      // it left, or its address is free or another process's
    } state = State::unused;
    // How this node knows that `key` is the key of the id's holder.
    enum class Trust : std::uint8_t {
        none,   // it does not: a process claims the id
        told,   // a certificate says so
        proven  // the holder has proven the key in a meeting with this node
    } trust = Trust::none;
    bool had = false;  // a process was a member with this id
    // `key` answered this node at `address`; until then the address is only the member's claim.
    bool answers_there = false;
    std::string address;
    wire::control::PublicKey key;
    std::uint32_t generation = 0;
    wire::control::Signature signature;                   // its certificate's
    std::shared_ptr<const wire::control::Member> former;  // while another process joins: the id's holder before
    Trust former_trust = Trust::none;                     // and how this node knew its key
    std::weak_ptr<PeerState> peer;                        // the peer that represents it, now or last
    std::uint64_t meeting = 0;                            // the meeting by which `peer` was met last
    bool healing = false;                                 // a conversation tries to meet it again
    unsigned incoming = 0;                                // meetings under way that it opened

    [[nodiscard]] bool is_there() const { return state == State::living || state == State::lost; }
    // Whether the id is known to be that process's, by a certificate or by its proof.
    [[nodiscard]] bool is_known_as(const wire::control::PublicKey& its_key) const {
        return trust != Trust::none && key == its_key;
    }
    [[nodiscard]] wire::control::Member as_member(NodeId id) const { return {id, generation, address, key, signature}; }
    // To be called when another process has the id now, or more is known of the same one.
    void set_process(const wire::control::Member& member) {
        answers_there = answers_there && key == member.key && address == member.address;
        key = member.key;
        address = member.address;
        generation = member.generation;
        signature = member.signature;
    }
};

class Members {
public:
    // By id; null: nothing was ever known of it. Entries are never moved or erased.
    [[nodiscard]] MemberEntry* find(NodeId id);
    // The id of the member at an address that has not ended; kNoNode: none.
    [[nodiscard]] NodeId at(std::string_view address) const;
    // The id of the member that a Peer represents; kNoNode: none.
    [[nodiscard]] NodeId of(const std::shared_ptr<PeerState>& peer) const;
    // The lowest id of the members that live and have proven their keys: the member that gives ids. kNoNode: none.
    [[nodiscard]] NodeId lowest() const;
    // One more than the highest id with which a process was a member.
    [[nodiscard]] std::uint32_t count() const { return count_; }
    // Ids from this one on are nobody's, whoever says otherwise.
    [[nodiscard]] NodeId ids_end() const { return std::min<NodeId>(count_ + kIdsAheadMax, wire::control::kMembersMax); }

    // Gives an id to a process that joins at that address: that of the member that was there, otherwise the lowest unused one, otherwise
    // that of a member that has ended. kNoNode: all are in use. The entry is `joining`, with a new generation.
    [[nodiscard]] NodeId give(const std::string& address, const wire::control::PublicKey& key, NodeId mine);
    // The join was not finished: no process was certified. The former holder of the id has ended, and may return.
    void take_back(NodeId id);
    // The member counts from here on. Precondition: its key was proven, or its certificate checked.
    void set(const wire::control::Member& member, MemberEntry::State state,
             MemberEntry::Trust trust = MemberEntry::Trust::proven);
    // Whether learn() accepts it: this node knows nothing as new of that id, and no living process that has it.
    [[nodiscard]] bool is_news(const wire::control::Member& member);
    // Another member has named it. Precondition: it is news, and its certificate was checked.
    void learn(const wire::control::Member& member);

    // All members that live, without `except`.
    [[nodiscard]] std::vector<wire::control::Member> list(NodeId except) const;
    [[nodiscard]] std::size_t size() const { return entries_.size(); }

private:
    MemberEntry& entry(NodeId id);
    std::deque<MemberEntry> entries_;  // growing moves none of them
    std::uint32_t count_ = 0;
};

}  // namespace rove::control
