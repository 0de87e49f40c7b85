// NodeCore: what implements rove::Node. It is put together from parts, one job each, and gives the layers above (C++, C, functions that run
// here, the control plane) access to them. Frames come in from the fabric, are dispatched, functions from the code cache run on them, and
// answers go out:
//
//   Lead          which thread works, how it waits, and how the work changes hands
//   Turns         what it does in one turn
//   Dispatcher    what is done with each frame that arrives; FunctionFinder, FrameChecks, PayloadParts and Gatherings beside it
//   Runner        functions while they run, and how threads wait
//   Answers       how calls of others are answered
//   Caller        how this process's calls are sent; Sender, CodeExchange, RoomWaits and LocalFrames beside it
//   OwnCalls      how they end, and who takes their results
//   Peers         whom the node has met; Routes, LinkEnds and AbsentMembers beside it
//
// Threads. One lock, the lead's, guards all of a node's state. One thread at a time leads (lead.hpp): it drains mailboxes and runs functions
// in place, without the lock. Where a function runs long, another thread leads; its frame is held in the mailbox until it ends. Long functions
// beyond NodeOptions::threads wait in their mailboxes. The control thread (meeting, membership, a peer's death) takes the lock for short
// steps. Functions here take the lock where they say so (EXCLUDES); getters do not.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/fork.hpp"
#include "code/cache.hpp"
#include "engine/caller.hpp"
#include "engine/gathering.hpp"
#include "engine/locked_fabric.hpp"
#include "engine/node_functions.hpp"
#include "engine/turns.hpp"
#include "services/memory.hpp"
#include "services/objects.hpp"

namespace rove {

namespace control {
class Control;
}

class NodeCore final : public std::enable_shared_from_this<NodeCore> {
public:
    // Over that fabric; null: over the one that the options name.
    [[nodiscard]] static Result<std::shared_ptr<NodeCore>> create(NodeOptions options,
                                                                  std::unique_ptr<fabric::Fabric> fabric = nullptr);
    ~NodeCore();
    NodeCore(const NodeCore&) = delete;
    void shut_down() EXCLUDES(lock_of<NodeLock>);

    // ---- the node's parts; whatever takes its lock is said there
    [[nodiscard]] Caller& caller() { return caller_; }
    [[nodiscard]] OwnCalls& own_calls() { return own_calls_; }
    [[nodiscard]] Answers& answers() { return answers_; }
    [[nodiscard]] Peers& peers() { return peers_; }
    [[nodiscard]] Routes& routes() { return routes_; }
    [[nodiscard]] Gatherings& gatherings() { return gatherings_; }
    [[nodiscard]] NodeFunctions& functions() { return functions_; }
    [[nodiscard]] LockedFabric& fabric() { return locked_fabric_; }
    [[nodiscard]] MemoryTable& memory() { return memory_; }
    [[nodiscard]] Objects& objects() { return objects_; }

    // ---- what it is
    [[nodiscard]] const NodeOptions& options() const { return options_; }
    [[nodiscard]] const std::string& address() const { return address_; }
    [[nodiscard]] NodeId id() const { return routes_.id(); }
    [[nodiscard]] std::uint32_t node_count() const { return routes_.node_count(); }
    [[nodiscard]] std::string name() const;  // "node 2", "this client": for messages

    // ---- for threads of the program
    [[nodiscard]] Result<std::shared_ptr<PeerState>> connect(std::string_view address) EXCLUDES(lock_of<NodeLock>);
    // Leads, or waits, until done() gives true; that is asked whenever something has happened.
    void drive(const std::function<bool()>& done, Deadline deadline) EXCLUDES(lock_of<NodeLock>);
    unsigned poll(std::chrono::milliseconds wait) EXCLUDES(lock_of<NodeLock>);
    void wake() noexcept;
    // Calls point to their node: it stays until the last of them has been taken or forgotten.
    void outlive_node(std::shared_ptr<NodeCore> self) EXCLUDES(lock_of<NodeLock>);
    // For a running function that knows itself to be long: another thread leads from here on.
    void hand_over_here() EXCLUDES(lock_of<NodeLock>);
    void warn_of_deadlocks() EXCLUDES(lock_of<NodeLock>);  // to be called every second or so

    // ---- how far this node may be used (lifetime.cpp); none takes the lock, but keep_thread
    // This process is a fork of the one that made the node: its threads and its locks are not here, and its links are the parent's.
    [[nodiscard]] bool is_inherited() const { return process_.is_past(); }
    // After code that is not the node's: it has forked, and this is the child. It returns in the parent alone.
    void stay_in_parent(const std::string& what) const {
        if (is_inherited()) end_child_of(what.c_str());
    }
    [[noreturn]] void keep_thread(rove_here* here) EXCLUDES(lock_of<NodeLock>);  // null: of a callback
    [[noreturn]] static void exit_thread(void* result);  // in place of pthread_exit() for shipped code
    // False: it was shut down, or is inherited. Two relaxed loads.
    [[nodiscard]] bool is_usable() const { return !stopped_.load(std::memory_order_relaxed) && !is_inherited(); }
    [[nodiscard]] Error why_unusable() const;
    // The node at that address; null: it was freed. For callers that may keep the address for longer than the node lives.
    [[nodiscard]] static std::shared_ptr<NodeCore> living(const void* node);
    // Frees a node, or leaves it alone where it is inherited.
    struct Delete {
        void operator()(NodeCore* core) const;
    };

    // The node's lock.
    class SCOPED_CAPABILITY Hold {
    public:
        explicit Hold(NodeCore& core) ACQUIRE(lock_of<NodeLock>) : hold_(core.lead_.mutex()) {}
        ~Hold() RELEASE() {}
        [[nodiscard]] HeldLock& lock() { return hold_.lock(); }

    private:
        rove::Hold hold_;
    };

private:
    friend struct CoreView;  // tests/node/core_view.hpp
    NodeCore(NodeOptions options, std::unique_ptr<fabric::Fabric> fabric);
    [[nodiscard]] Status start();
    static void remember(const std::shared_ptr<NodeCore>& core);
    void tell_of_last_ends(HeldLock& lock, const OwnThreads::One& self) REQUIRES(lock_of<NodeLock>);
    void call_back(const Run& run, const CallSlot::Notify& notify) EXCLUDES(lock_of<NodeLock>);

    const MakingProcess process_;
    std::atomic<bool> stopped_{false};  // calls cannot begin any more
    NodeOptions options_;
    std::string address_;
    const std::function<std::string()> name_ = [this] { return name(); };
    std::unique_ptr<code::CodeCache> cache_;
    std::unique_ptr<fabric::Fabric> fabric_;
    std::unique_ptr<control::Control> control_;
    const std::shared_ptr<SpareMemory> spare_memory_ = std::make_shared<SpareMemory>();  // for what comes in parts

    // The parts. Those that each uses outlive it, or are not used when it ends: all of them rest by then.
    Routes routes_;
    Complaints complaints_ GUARDED_BY(lock_of<NodeLock>);  // of peers
    AbsentMembers absent_ GUARDED_BY(lock_of<NodeLock>);   // members without a link
    OwnFunctions own_functions_ GUARDED_BY(lock_of<NodeLock>);
    HousekeepingClock housekeeping_ GUARDED_BY(lock_of<NodeLock>);
    MemoryTable memory_;
    Objects objects_{name_};
    Lead lead_;  // after the fabric, which outlives the links that it watches
    OwnThreads own_threads_;
    Runner runner_;
    LocalFrames local_;
    Peers peers_;
    Sender sender_ GUARDED_BY(lock_of<NodeLock>);
    CodeExchange exchange_ GUARDED_BY(lock_of<NodeLock>);
    RoomWaits rooms_;
    OwnCalls own_calls_;
    Answers answers_;
    FrameChecks checks_;
    PayloadParts payload_parts_ GUARDED_BY(lock_of<NodeLock>);
    LinkEnds link_ends_;
    FunctionFinder finder_ GUARDED_BY(lock_of<NodeLock>);
    Gatherings gatherings_;
    Dispatcher dispatcher_;
    Turns turns_;
    Caller caller_;
    NodeFunctions functions_;
    LockedFabric locked_fabric_;

    bool shut_down_ GUARDED_BY(lock_of<NodeLock>) = false;
    // Itself, where a function did not end with the node.
    std::shared_ptr<NodeCore> abandoned_ GUARDED_BY(lock_of<NodeLock>);
};

}  // namespace rove
