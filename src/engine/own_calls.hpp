// OwnCalls: the calls that this process has in flight, those of functions that run here among them: how their time ends, and how threads
// wait for their results and take them. How calls are sent is Caller's, and how their answers arrive ReplyReceiver's.
//
// Threads: what takes the engine's lock says so (EXCLUDES); all else runs under it.
//
// Invariants: a call ends once: by its answer, because its time is over, because it is cancelled, or because its peer or this node ends. Answers
// that arrive later are dropped; memory on another node that such an answer names is freed there. A requested notification is called once,
// after the end and without the lock, unless the request was withdrawn or the call forgotten.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lead/runner.hpp"
#include "peer/calls.hpp"
#include "peer/peer_list.hpp"
#include "peer/peer_state.hpp"
#include "peer/untaken_memory.hpp"

namespace rove {

class OwnCalls {
public:
    using Lock = HeldLock;

    // The parts of the node that this one uses. They outlive it.
    struct Beside {
        const NodeOptions& options;
        Lead& lead;
        Lead::Duties& duties;  // the leader's
        Runner& runner;
        const std::unique_ptr<fabric::Fabric>& fabric;
        const PeerList& peers;
        const std::shared_ptr<SpareMemory>& spare_memory;
        std::function<std::string()> name;                                   // of this node, for messages
        std::function<void(const Run&, const CallSlot::Notify&)> call_back;  // without the lock; nothing leaves it
        std::function<void(PeerState&, Bytes place)> free_memory;  // on the peer, by what its allocation answered
    };
    OwnCalls(Beside beside, Generations generations)
        : options_(beside.options),
          lead_(beside.lead),
          duties_(beside.duties),
          runner_(beside.runner),
          fabric_(beside.fabric),
          peers_(beside.peers),
          spare_memory_(beside.spare_memory),
          name_(std::move(beside.name)),
          call_back_(std::move(beside.call_back)),
          free_memory_(std::move(beside.free_memory)),
          table_(generations, spare_memory_) {}

    // ---- beginning: for whoever sends them
    [[nodiscard]] CallTable& table() REQUIRES(lock_of<EngineLock>) { return table_; }
    // For each call that has just been sent: its answer must arrive in what is left of the call's time.
    CallId sent_within(CallId call, bool wants_reply, const Deadline& deadline) REQUIRES(lock_of<EngineLock>) {
        if (!wants_reply || !deadline) return call;
        limit_sent(call, *deadline);
        return call;
    }

    // ---- what arrives: for ReplyReceiver
    // The call has ended: notifies whoever waits.
    void ended(CallSlot& slot) REQUIRES(lock_of<EngineLock>) {
        if (slot.notify.function != nullptr) table_.add_to_tell(slot);
        lead_.tell_waiting();
    }
    // A reply to a call that was forgotten, or has ended without it. `from`: null: it came from no peer of this engine.
    void came_late(PeerState* from, const wire::Frame& reply) REQUIRES(lock_of<EngineLock>);
    // The peer is gone: calls to it end so, and the memory that they would have brought is gone with it.
    void peer_left(const PeerState& peer, const Error& why) REQUIRES(lock_of<EngineLock>);
    // No call begins any more, and those in flight end so.
    void close(const Error& why) REQUIRES(lock_of<EngineLock>);

    // ---- by the leader
    // When the first of them is late; nothing: none has a limit.
    [[nodiscard]] std::optional<TimePoint> first_deadline() const REQUIRES(lock_of<EngineLock>) {
        return table_.first_deadline();
    }
    // Ends those that are late. Returns how many these were.
    unsigned end_late() REQUIRES(lock_of<EngineLock>);
    // Whether somebody is to be notified of an end.
    [[nodiscard]] bool has_ends_to_tell() const REQUIRES(lock_of<EngineLock>) { return table_.has_to_tell(); }
    // Notifies them, as long as this thread leads. Returns how many these were.
    unsigned tell_of_ends(Lead::Turn& turn) REQUIRES(lock_of<EngineLock>);

    // ---- by threads that wait; any thread
    // True: ended.
    [[nodiscard]] bool wait(CallId id, Deadline deadline) EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] std::optional<std::size_t> wait_any(std::span<const CallId> ids, Deadline deadline)
        EXCLUDES(lock_of<EngineLock>);
    // Whether it has ended, after a look where nobody else would look.
    [[nodiscard]] bool test(CallId id) EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] Result<CallEnd> finish(CallId id) EXCLUDES(lock_of<EngineLock>);  // waits, and frees the slot
    // The same into the caller's memory; gives the result's size. invalid: it is larger than `into`.
    [[nodiscard]] Result<std::size_t> finish_into(CallId id, std::span<std::byte> into) EXCLUDES(lock_of<EngineLock>);
    // The result in place, until the call is forgotten: waits for it.
    [[nodiscard]] Result<Bytes> result(CallId id) EXCLUDES(lock_of<EngineLock>);
    // The same, but gives nullopt if the result arrived in parts while this waited: then the sink was given all of it.
    [[nodiscard]] Result<std::optional<Bytes>> result_into(CallId id, const ResultSink& sink)
        EXCLUDES(lock_of<EngineLock>);
    void forget(CallId id) EXCLUDES(lock_of<EngineLock>);
    // Its result names memory, to be freed where nobody takes it.
    void expect_memory(CallId id) EXCLUDES(lock_of<EngineLock>);
    // Ends a call from this side: what arrives for it later is discarded.
    void cancel(CallId id) EXCLUDES(lock_of<EngineLock>);
    void limit(CallId id, TimePoint deadline) EXCLUDES(lock_of<EngineLock>);
    // Has `notify(argument)` called when the call has ended, by the thread that leads. False: it has ended already.
    // Null takes back what was asked for. False: it has been called, is being called, or was never asked for.
    [[nodiscard]] bool notify(CallId id, void (*notify)(void*), void* argument) EXCLUDES(lock_of<EngineLock>);

    // ---- calls, and frames that callers fill in place, point to their node, which stays until the last of them is done
    void begin_frame() REQUIRES(lock_of<EngineLock>) { ++begun_frames_; }
    // Gives the node where this was the last of them. It is released without the lock.
    [[nodiscard]] std::shared_ptr<NodeCore> end_frame() REQUIRES(lock_of<EngineLock>) {
        --begun_frames_;
        return last_use();
    }
    void outlive_node(std::shared_ptr<NodeCore> node) REQUIRES(lock_of<EngineLock>) {
        if (is_used()) node_ = std::move(node);
    }

private:
    struct Afterwards {                  // what is left to be done without the lock when a slot is free
        std::shared_ptr<NodeCore> last;  // the node itself, where that was the last call that it had stayed for
        TrimAtEnd memory;
        [[gnu::always_inline]] ~Afterwards() = default;  // each call has one
    };
    void limit_sent(CallId call, TimePoint deadline) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool has_ended(CallId id) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool wait_for(Lock& lock, CallId id, Deadline deadline) REQUIRES(lock_of<EngineLock>);
    void wait_into(Lock& lock, CallId id, const ResultSink& sink) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] std::optional<std::size_t> finish_at_once(CallId id, std::span<std::byte> into)
        EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] Result<std::size_t> wait_and_finish_into(CallId id, std::span<std::byte> into)
        EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] std::optional<std::size_t> take_reply(CallId id, std::span<std::byte> into)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Result<CallSlot*> ended_slot(CallId id) REQUIRES(lock_of<EngineLock>);
    void free_slot(CallId id, Afterwards& afterwards) REQUIRES(lock_of<EngineLock>);
    void leave_memory(CallSlot& slot) noexcept REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool is_used() const REQUIRES(lock_of<EngineLock>) { return table_.used() > 0 || begun_frames_ > 0; }
    [[nodiscard]] std::shared_ptr<NodeCore> last_use() REQUIRES(lock_of<EngineLock>) {
        return node_ && !is_used() ? std::exchange(node_, nullptr) : nullptr;
    }

    const NodeOptions& options_;
    Lead& lead_;
    Lead::Duties& duties_;
    Runner& runner_;
    const std::unique_ptr<fabric::Fabric>& fabric_ GUARDED_BY(lock_of<EngineLock>);
    const PeerList& peers_;
    const std::shared_ptr<SpareMemory>& spare_memory_;
    const std::function<std::string()> name_;
    const std::function<void(const Run&, const CallSlot::Notify&)> call_back_;
    const std::function<void(PeerState&, Bytes)> free_memory_;
    CallTable table_ GUARDED_BY(lock_of<EngineLock>);
    UntakenMemory untaken_ GUARDED_BY(lock_of<EngineLock>);
    std::size_t begun_frames_ GUARDED_BY(lock_of<EngineLock>) = 0;
    std::shared_ptr<NodeCore> node_ GUARDED_BY(lock_of<EngineLock>);  // while calls outlive the Node
};

}  // namespace rove
