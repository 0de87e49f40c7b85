// Host: the node, as its control plane sees it; and Engines: its engines, which have the links.
//
// Threads: the control thread's; Engines names one more. No state in Host: it refers to what outlives the control plane.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/locked_fabric.hpp"
#include "engine/node_functions.hpp"
#include "engine/peers.hpp"
#include "peer/node_ids.hpp"

namespace rove::control {

// What a meeting uses of the engine whose link it makes.
struct ChosenEngine {
    LockedFabric* fabric = nullptr;
    Peers* peers = nullptr;
    friend bool operator==(const ChosenEngine&, const ChosenEngine&) = default;
};

// The engines of a node. A meeting chooses one for its link when it begins: that one opens, connects, drops and adopts the link (PendingLink).
//
// Threads: the control thread, or the thread that drops its conversations after its end. Each function takes the lock of one engine after
// the other.
//
// Invariants: a peer has links of one engine only, as long as a handle of it exists, and so has a member, as long as the node lives,
// whichever process has its id.
class Engines {
public:
    Engines() = default;
    Engines(const Engines&) = delete;
    virtual ~Engines() = default;

    // ---- links of meetings in progress
    // The engine for the link of a meeting: that of the peer that is met again, that of the member, otherwise the one with the fewest peers.
    // Null and kNoNode: not known. The engine counts one more peer until release().
    [[nodiscard]] virtual ChosenEngine choose(const PeerState* old, NodeId member) EXCLUDES(lock_of<EngineLock>) = 0;
    virtual void release(const ChosenEngine& chosen) noexcept = 0;
    // Peers::adopt, by the engine that has opened the link, which is moved from if it may have become a peer's. overloaded: `old`, or the
    // member, has got another engine since that one was chosen; the next meeting will choose it.
    [[nodiscard]] virtual Result<Peers::Adopted> adopt(const ChosenEngine& by, Meeting meeting,
                                                       std::unique_ptr<fabric::Link>& link,
                                                       std::shared_ptr<PeerState> old)
        EXCLUDES(lock_of<EngineLock>) = 0;

    // ---- peers and members: the functions of Peers with these names
    [[nodiscard]] virtual bool linked(const PeerState& peer) const EXCLUDES(lock_of<EngineLock>) = 0;
    virtual void lose(const std::shared_ptr<PeerState>& peer, std::uint64_t meeting, Error why)
        EXCLUDES(lock_of<EngineLock>) = 0;
    virtual void member_expected(NodeId member, const AbsentMembers::Process& process, const std::string& why)
        EXCLUDES(lock_of<EngineLock>) = 0;
    virtual void member_gone(NodeId member, const std::string& why) EXCLUDES(lock_of<EngineLock>) = 0;
};

// All of it outlives the control plane.
struct Host {
    const NodeOptions& options;
    NodeIds& ids;
    Engines& engines;
    const NodeFunctions& functions;
    std::function<std::string()> name;   // for messages
    std::function<void()> every_second;  // called once a second, on the control thread
};

}  // namespace rove::control
