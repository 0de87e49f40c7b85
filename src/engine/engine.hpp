// Engine: what one polling thread owns, whichever thread that is at the moment: a fabric, the links to peers, the calls in flight over them,
// and the functions that run for them. Frames arrive from the fabric and are dispatched, functions from the code cache run on them, and
// answers are sent. Its parts have one job each:
//
//   Lead          which thread works, how it waits, and how the work changes hands
//   Turns         what it does in one turn
//   Dispatcher    what is done with each frame that arrives; FunctionFinder, FrameChecks, PayloadParts and Gatherings beside it
//   Runner        functions while they run, and how threads wait
//   Answers       how calls of others are answered
//   Caller        how this process's calls are sent; Sender, CodeExchange, RoomWaits and LocalFrames beside it
//   OwnCalls      how they end, and who takes their results; ReplyReceiver beside it
//   Peers         whom the engine has met; LinkEnds beside it
//   LeftFrames    what other engines of the node have left for this one
//
// A node may have several. No thread holds the locks of two at once. What they share is the code cache, which has a place for each of them
// (code/leaders.hpp), and SharedState, whose parts have locks of their own. A link belongs to one engine, and so does its peer
// (PeerState::engine), for as long as the node knows it. An answer that arrives for another engine is left to that one (BetweenEngines).
// Bounds of what an engine owns (peers, calls, bytes that wait) are each engine's.
//
// Threads. One lock, the lead's, guards all state. One thread at a time leads (lead.hpp): it drains mailboxes and runs functions in place,
// without the lock. Where a function runs long, another thread leads; its frame is held in the mailbox until it ends. Long functions
// beyond NodeOptions::threads wait in their mailboxes. The control thread (meeting, membership, a peer's death) takes the lock for short
// steps. Functions here take the lock where they say so (EXCLUDES); getters do not.
//
// Invariants: a link, the calls over it and the functions that it brings stay with one engine until they end. The fabric outlives all links,
// those included that have ended and on whose frames functions still run. An engine that is stopped stays so.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/fork.hpp"
#include "code/cache.hpp"
#include "engine/caller.hpp"
#include "engine/gathering.hpp"
#include "engine/here.hpp"
#include "engine/locked_fabric.hpp"
#include "engine/shared_state.hpp"
#include "engine/turns.hpp"

namespace rove {

class Engine final {
public:
    // The parts of the node that the engine uses. They outlive it.
    struct Beside {
        NodeCore& node;  // for functions, which ask it where they run
        const NodeOptions& options;
        const std::unique_ptr<code::CodeCache>& cache;  // made when the node starts
        SharedState& shared;
        unsigned index;                 // among the node's engines, from 0
        const FunctionId& free_memory;  // what every node has
        // Meets the peer again at that address, in that time. Without the lock.
        std::function<Result<std::shared_ptr<PeerState>>(const std::string& address,
                                                         const std::shared_ptr<PeerState>& peer, Deadline)>
            meet;
        std::function<std::string()> name;  // of the node, for messages
    };
    explicit Engine(Beside beside);
    ~Engine() { between_.wake_by(index_, nullptr); }
    Engine(const Engine&) = delete;

    // ---- its beginning
    // First of all.
    [[nodiscard]] Status open(std::unique_ptr<fabric::Fabric> fabric);
    // When the node has its cache, and before any function runs.
    void use_code() EXCLUDES(lock_of<EngineLock>) {
        const Hold hold(lock());
        runner_.code().take();
    }
    // Starts `count` threads of the engine's own.
    [[nodiscard]] Status start_threads(unsigned count) EXCLUDES(lock_of<EngineLock>);

    // ---- its parts; whatever takes the lock is said there
    [[nodiscard]] Lead& lead() { return lead_; }
    [[nodiscard]] Caller& caller() { return caller_; }
    [[nodiscard]] OwnCalls& own_calls() { return own_calls_; }
    [[nodiscard]] Answers& answers() { return answers_; }
    [[nodiscard]] Routes& routes() { return routes_; }
    [[nodiscard]] Peers& peers() { return peers_; }
    [[nodiscard]] Gatherings& gatherings() { return gatherings_; }
    [[nodiscard]] LockedFabric& fabric() { return locked_fabric_; }
    [[nodiscard]] EngineLock& lock() { return lead_.mutex(); }
    [[nodiscard]] NodeCore& node() { return node_; }

    // ---- for threads of the program
    // Leads, or waits, until done() gives true; that is asked whenever something has happened.
    void drive(const std::function<bool()>& done, Deadline deadline) EXCLUDES(lock_of<EngineLock>);
    // Serves what arrives within that time; gives how many frames that were.
    unsigned poll(std::chrono::milliseconds wait) EXCLUDES(lock_of<EngineLock>);
    // Ends another thread's poll().
    void interrupt() noexcept { lead_.wakes().interrupt(); }
    // Code that calls may wait for is ready.
    void code_is_ready() { lead_.wakes().wake_unlocked(); }
    // For a running function that knows itself to be long: another thread leads from here on.
    void hand_over_here() EXCLUDES(lock_of<EngineLock>);

    // ---- code that is not the node's, and its threads (kept_threads.cpp)
    // This process is a fork of the one that made the engine: its threads and its locks are not here, and its links are the parent's.
    [[nodiscard]] bool is_inherited() const { return process_.is_past(); }
    // After code that is not the node's: it has forked, and this is the child. It returns in the parent alone.
    void stay_in_parent(const std::string& what) const {
        if (is_inherited()) end_child_of(what.c_str());
    }
    [[noreturn]] void keep_thread(rove_here* here) EXCLUDES(lock_of<EngineLock>);  // null: of a callback
    [[noreturn]] static void exit_thread(void* result);  // in place of pthread_exit() for shipped code

    // To be called every second or so: what has to be done also while nobody leads.
    void each_second() EXCLUDES(lock_of<EngineLock>);

    // ---- its end (engine_end.cpp)
    // No call can begin any more. A relaxed load.
    [[nodiscard]] bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }
    // Calls can begin, as far as is known without the lock.
    [[nodiscard]] bool is_usable() const { return !is_stopped() && !is_inherited(); }
    // In phases, within NodeOptions::grace. Once, after which nobody new is met. False: functions have not returned, and use what they used
    // for as long as they run.
    [[nodiscard]] bool end() EXCLUDES(lock_of<EngineLock>);
    // Ends the engines of a node together: each phase of all of them before the next phase, so that they share one grace. Skips engines that
    // have ended.
    [[nodiscard]] static bool end_all(std::span<const std::unique_ptr<Engine>> engines) EXCLUDES(lock_of<EngineLock>);
    // Call after end(), when the control plane has stopped.
    void drop_links() EXCLUDES(lock_of<EngineLock>);

private:
    friend class EngineEnd;    // engine_end.cpp
    friend struct EngineView;  // tests/node/engine_view.hpp

    void part_with(Run& run, bool ran) EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] Status replace_this_thread() EXCLUDES(lock_of<EngineLock>);
    void warn_of_deadlocks() REQUIRES(lock_of<EngineLock>);
    void tell_of_last_ends(HeldLock& lock, const OwnThreads::One& self) REQUIRES(lock_of<EngineLock>);
    void call_back(const Run& run, const CallSlot::Notify& notify) EXCLUDES(lock_of<EngineLock>);

    NodeCore& node_;
    const NodeOptions& options_;
    const std::function<std::string()> name_;
    const MakingProcess process_;
    BetweenEngines& between_;
    const unsigned index_;
    std::atomic<bool> stopped_{false};
    std::unique_ptr<fabric::Fabric> fabric_ PT_GUARDED_BY(lock_of<EngineLock>);
    const std::shared_ptr<SpareMemory> spare_memory_ = std::make_shared<SpareMemory>();  // for what is sent in parts

    // The parts. Those that each uses outlive it, or are not used when it ends: all of them rest by then.
    HousekeepingClock housekeeping_ GUARDED_BY(lock_of<EngineLock>);
    Lead lead_;  // after the fabric, which outlives the links that it watches
    OwnThreads own_threads_;
    Runner runner_;
    LocalFrames local_;
    const OtherEngines others_;
    Routes routes_;
    Peers peers_;
    Sender sender_ GUARDED_BY(lock_of<EngineLock>);
    CodeExchange exchange_ GUARDED_BY(lock_of<EngineLock>);
    RoomWaits rooms_;
    OwnCalls own_calls_;
    ReplyReceiver replies_;
    Answers answers_;
    FrameChecks checks_;
    PayloadParts payload_parts_ GUARDED_BY(lock_of<EngineLock>);
    LinkEnds link_ends_;
    LeftFrames left_;
    FunctionFinder finder_ GUARDED_BY(lock_of<EngineLock>);
    Gatherings gatherings_;
    Dispatcher dispatcher_;
    Turns turns_;
    Caller caller_;
    LockedFabric locked_fabric_;

    bool functions_left_ GUARDED_BY(lock_of<EngineLock>) = false;  // when it ended
};

}  // namespace rove

inline rove::NodeCore& rove_here::node() const {
    return engine->node();
}
