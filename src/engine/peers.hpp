// Peers: the peers that an engine has links to, or had, and how a new link becomes a peer's. How links end is in LinkEnds.
//
// Threads: what takes the engine's lock says so (EXCLUDES); all else runs under it. Only the leader takes peers away (remove_unneeded).
//
// Invariants: at most kPeersMax peers of all engines together (PeerPlaces). A peer that is met again is the same object, with another meeting's
// number, and has forgotten all that the other end may have forgotten. Nothing points to a peer that is not among these.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/link_ends.hpp"
#include "peer/peer_list.hpp"
#include "peer/peer_places.hpp"

namespace rove {

// Meetings that are under way, and links that have ended while a function uses them, have a place on the board, too.
inline constexpr std::size_t kOtherLinksMax = 4'096;
static_assert(kPeersMax + kOtherLinksMax <= fabric::kBoardPlaces);

// The result of a meeting: the other end's identity, and what the two have agreed on.
struct Meeting {
    PeerIdentity peer;
    std::vector<Digest> resident;  // packages that the peer has
    bool replace = false;          // an existing link to the peer is broken, as the other end has reported
    PeerState::HangUp hang_up;
};

class Peers {
public:
    // The parts of the node that this one uses. They outlive it.
    struct Beside {
        Engine& engine;  // whose these are: each peer knows it
        Lead& lead;
        Routes& routes;
        AbsentMembers& absent;
        PeerPlaces& places;  // of the node
        Sender& sender;
        LinkEnds& link_ends;
        std::function<std::string()> name;  // of this node, for messages
    };
    explicit Peers(Beside beside)
        : engine_(beside.engine),
          lead_(beside.lead),
          routes_(beside.routes),
          absent_(beside.absent),
          places_(beside.places),
          sender_(beside.sender),
          link_ends_(beside.link_ends),
          name_(std::move(beside.name)) {}

    [[nodiscard]] const PeerList& all() const { return all_; }
    // Those that a leader looks at.
    [[nodiscard]] WarmPeers& warm() { return all_.warm(); }
    // Changes with the links that a leader looks at.
    [[nodiscard]] std::uint64_t links_version() const REQUIRES(lock_of<EngineLock>) {
        return meetings_ + link_ends_.count() + all_.warm().version();
    }

    // ---- for the control thread
    struct Adopted {
        std::shared_ptr<PeerState> peer;
        std::uint64_t meeting = 0;  // its number, for lose()
        bool taken = false;         // false: the peer has a good link already, and this one was dropped
    };
    // Makes a peer of a link of this engine that is connected, or brings an old one of this engine back to life. overloaded: there are as many
    // as may be, or `old` is another engine's.
    [[nodiscard]] Result<Adopted> adopt(Meeting meeting, std::unique_ptr<fabric::Link> link,
                                        std::shared_ptr<PeerState> old) EXCLUDES(lock_of<EngineLock>);
    // The connection of that meeting has ended. Nothing happens where the peer was met again since. Needs no memory.
    void lose(const std::shared_ptr<PeerState>& peer, std::uint64_t meeting, Error why) EXCLUDES(lock_of<EngineLock>);
    // A member without a link: it is being met again (expected), or its process has ended (gone).
    void member_expected(NodeId member, const AbsentMembers::Process& process, const std::string& why)
        EXCLUDES(lock_of<EngineLock>);
    void member_gone(NodeId member, const std::string& why) EXCLUDES(lock_of<EngineLock>);

    // ---- questions, by any thread
    // There is a link, and nothing is known against it.
    [[nodiscard]] bool linked(const PeerState& peer) const EXCLUDES(lock_of<EngineLock>);
    // The peer that functions on this node reach by that id. invalid: there is no link.
    [[nodiscard]] Result<std::shared_ptr<PeerState>> linked(NodeId to) const EXCLUDES(lock_of<EngineLock>);
    // One that was met at that address, and has a link; null: none.
    [[nodiscard]] std::shared_ptr<PeerState> linked_at(std::string_view address) const EXCLUDES(lock_of<EngineLock>);
    // Whether the peer with that name (PeerState::back) is still linked.
    [[nodiscard]] bool knows_owner(NodeId owner) const EXCLUDES(lock_of<EngineLock>);
    // Whether the other member of that id is reached at that address.
    [[nodiscard]] bool reaches(NodeId node, std::string_view address) const EXCLUDES(lock_of<EngineLock>);
    // With a link, or that somebody has a handle of.
    [[nodiscard]] std::size_t count() const EXCLUDES(lock_of<EngineLock>);
    // Those with a link by which posts were sent.
    [[nodiscard]] std::vector<std::shared_ptr<PeerState>> with_posts() const EXCLUDES(lock_of<EngineLock>);
    // Copies: a reconnect changes what a peer is.
    [[nodiscard]] NodeDescription describe(const PeerState& peer) const EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] NodeId id_of(const PeerState& peer) const EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] fabric::Lane lane_of(const PeerState& peer) const EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] Peer::Counters counters(const PeerState& peer) const EXCLUDES(lock_of<EngineLock>);

    // ---- by the leader
    // Whether nobody needs the peer. `peer`: a copy of the list's.
    [[nodiscard]] static bool is_unneeded(const std::shared_ptr<PeerState>& peer) REQUIRES(lock_of<EngineLock>);
    // Takes the peer away unless somebody needs it. A client that returns is a new one, and the others are met again by their addresses.
    // True: it is no longer there.
    [[nodiscard]] bool remove_unneeded(std::size_t index, const std::shared_ptr<PeerState>& peer)
        REQUIRES(lock_of<EngineLock>);
    // At the node's end.
    void forget_meetings() REQUIRES(lock_of<EngineLock>);

private:
    friend struct EngineView;  // tests/node/engine_view.hpp

    [[nodiscard]] std::shared_ptr<PeerState> that_was_member(NodeId id) const REQUIRES(lock_of<EngineLock>);
    void enter(PeerState& peer, const std::vector<Digest>& resident) REQUIRES(lock_of<EngineLock>);

    Engine& engine_;
    Lead& lead_;
    Routes& routes_;
    AbsentMembers& absent_;
    PeerPlaces& places_;
    Sender& sender_;
    LinkEnds& link_ends_;
    const std::function<std::string()> name_;
    PeerList all_;
    // The peer that had that dense id last. It may have been destroyed.
    std::unordered_map<NodeId, const PeerState*> members_ GUARDED_BY(lock_of<EngineLock>);
    std::uint64_t meetings_ GUARDED_BY(lock_of<EngineLock>) = 0;  // of this engine, ever, with whomever
};

}  // namespace rove
