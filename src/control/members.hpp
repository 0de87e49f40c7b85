// The members that a node knows: who has which id, by which key, at which address, and whether it lives.
//
// Threads: the control thread's.
//
// Invariants: entries are neither moved nor removed, so pointers to them stay valid. An id whose state is `joining` has `former`, to which
// take_back() returns. A process is taken at its word (Trust::none) in no state but `joining`, or where nothing better was ever known of the id.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "control/identity.hpp"
#include "engine/peers.hpp"
#include "wire/control.hpp"

namespace rove::control {

// Ids from the count on that may be taken by somebody else's word, a list's or a certificate's: joins that this node has not
// heard of yet. So one such word raises the count by 64 at most, and costs 64 entries of some 200 bytes.
inline constexpr NodeId kIdsAheadMax = 64;

struct MemberEntry {
    enum class State : std::uint8_t {
        unused,   // nothing was ever known of the id; an entry that has left this state does not return to it
        joining,  // has an id from this node, and no lane yet
        living,   // there is a link to it
        lost,     // there is none now, and the process may live
        gone      // it left, or its address is nobody's or another process's
    } state = State::unused;
    // How this node knows that `key` is the key of the id's holder.
    enum class Trust : std::uint8_t {
        none,   // it does not: somebody asks for the id
        told,   // a certificate says so
        proven  // the holder has proven the key in a meeting with this node
    } trust = Trust::none;
    bool had = false;            // some process was a member with this id
    bool answers_there = false;  // `key` answered this node at `address`, which is the member's own word until then
    std::string address;
    wire::control::PublicKey key;
    std::uint32_t generation = 0;
    wire::control::Signature signature;                   // of its certificate
    std::shared_ptr<const wire::control::Member> former;  // while another process joins: who had the id before
    Trust former_trust = Trust::none;                     // and how that was known
    std::weak_ptr<PeerState> peer;                        // that stands for it, now or last
    std::uint64_t meeting = 0;                            // by which `peer` was met last
    bool healing = false;                                 // somebody tries to meet it again
    unsigned incoming = 0;                                // meetings under way that it opened

    [[nodiscard]] bool is_there() const { return state == State::living || state == State::lost; }
    // The id is known to be that process's, by a certificate or in person.
    [[nodiscard]] bool is_known_as(const wire::control::PublicKey& its_key) const {
        return trust != Trust::none && key == its_key;
    }
    [[nodiscard]] wire::control::Member as_member(NodeId id) const { return {id, generation, address, key, signature}; }
    // Another process has the id now, or the same one is known better.
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
    // The member at an address that has not gone; kNoNode: none.
    [[nodiscard]] NodeId at(std::string_view address) const;
    // That a Peer stands for; kNoNode: none.
    [[nodiscard]] NodeId of(const std::shared_ptr<PeerState>& peer) const;
    // The lowest id of those that are there and have proven their keys: the member that gives ids. kNoNode: none.
    [[nodiscard]] NodeId lowest() const;
    // One more than the highest id that a process was a member with.
    [[nodiscard]] std::uint32_t count() const { return count_; }

    // An id for a process that joins at that address: that of the member that was there, else the lowest that nobody had, else
    // one of who is gone. kNoNode: there are as many as there may be. The entry is `joining`, its generation a new one.
    [[nodiscard]] NodeId give(const std::string& address, const wire::control::PublicKey& key, NodeId mine);
    // The join was not finished: nobody was certified. Whoever had the id before has gone, and may come back.
    void take_back(NodeId id);
    // From here on it counts. Precondition: its key was proven, or its certificate checked.
    void set(const wire::control::Member& member, MemberEntry::State state,
             MemberEntry::Trust trust = MemberEntry::Trust::proven);
    // Whether learn() takes it: nothing as new is known of that id, and no process that has it is there.
    [[nodiscard]] bool is_news(const wire::control::Member& member);
    // Another member has named it. Precondition: it is news, and its certificate was checked.
    void learn(const wire::control::Member& member);

    // All that are there, but `except`.
    [[nodiscard]] std::vector<wire::control::Member> list(NodeId except) const;
    [[nodiscard]] std::size_t size() const { return entries_.size(); }

private:
    MemberEntry& entry(NodeId id);
    std::deque<MemberEntry> entries_;  // growing moves none of them
    std::uint32_t count_ = 0;
};

}  // namespace rove::control
