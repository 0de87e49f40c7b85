// A node's state of one peer: the link, frames that wait to be sent, and what the two have told each other about code.
//
// Threads: under the lock of its engine, but for `engine`, has_residents and meeting, which any thread may read.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "base/clock.hpp"
#include "code/cache.hpp"
#include "fabric/fabric.hpp"
#include "lead/engine_lock.hpp"
#include "lead/large_turns.hpp"
#include "peer/absent_members.hpp"
#include "peer/bindings.hpp"
#include "peer/code_answers.hpp"
#include "peer/code_arrival.hpp"
#include "peer/dropped_bytes.hpp"
#include "peer/outbox.hpp"
#include "peer/parked.hpp"
#include "peer/staging.hpp"
#include "rove/node.hpp"
#include "wire/control.hpp"
#include "wire/kinds.hpp"

namespace rove {

// While a peer has this much of its replies to take, no more of its calls are begun. Mostly such a peer takes as fast as it can, and
// functions only answer faster.
inline constexpr std::size_t kBacklogBytes = kOutboxBytesMax / 8;
// While it has this much, a function that replies to it waits until some of it is taken: one that had begun before, or that answers later.
inline constexpr std::size_t kFullBacklogBytes = kOutboxBytesMax / 2;
// Large payloads that have been begun to one peer at once, by functions that run one on top of the other's wait: one fewer than
// the receiver takes from a peer.
inline constexpr std::size_t kLargesMax = kStagedBytesMax / wire::kMessageBytesMax - 1;
// After so many calls with its code inline, a function that is not to be sent inline always is called by its handle: by then the
// code in the frames has cost about as much as sending it ahead once.
inline constexpr unsigned kInlineSends = 8;

// How long a link that ended is kept for the goodbye on the control connection, which says why: its own socket's end usually comes
// first, by some 100 us, by 20 ms where both processes want one busy core, and by more where a machine stands still for a while. A
// process that dies ends both at once, so only a link that was cut alone is kept so long.
inline constexpr auto kGoodbyeWait = std::chrono::seconds(1);
// The code that two peers have told each other about, and sent.
struct CodeBetween {
    Bindings bindings;                                     // the peer's handles for functions that I send
    Aliases aliases;                                       // what old handles of mine meant, told by the peer
    std::unordered_map<FunctionId, unsigned> sent_inline;  // how many times: Sending::inlined
    SentPackages sent;                                     // packages it has had from me, or is known to have
    CodeArrival arrival;                                   // what it sends in pieces
    CodeArrival passed_on;                                 // … for others, who answered a question that it passed on
    std::optional<std::pair<Digest, Error>> refused;  // the last package that was refused for lack of room, and why
    CodeAnswers answers;                              // what it asked for, and has not been sent whole

    void forget(DroppedBytes& dropped);
};

class Gathering;
// A peer's calls, as far as this node has come with them.
struct CallsTaken {
    std::optional<Parked> parked;  // the first, which waits
    Staging staged;                // payloads that come in parts
    bool waits_to_stage = false;   // the next one waits until others' are taken
    bool are_quick = false;        // all of a whole turn were, and none has been slow since (Dispatcher::serve_calls)
    TimePoint looked_at{};         // at the clock, during them
    std::uint64_t taken_at_look = 0;  // lines of its mailbox, when this node looked last whether it goes on with them
    Gathering* gathering = nullptr;   // the run that reads one of them itself
};

// This node's calls to a peer, and those of others that go by way of it.
struct CallsSent {
    SentOn sent_on;                   // for others, and not answered yet
    std::uint64_t in_parts = 0;       // payloads that went in parts
    LargeTurns larges;                // who sends them
    bool frame_open = false;          // a frame of calls is being filled in place: others wait in the outbox …
    std::thread::id frame_opened_by;  // … but not the thread that fills it
};

class Engine;

struct PeerState : std::enable_shared_from_this<PeerState> {
    // `outbox_bytes`: of all peers of the engine (Outbox).
    explicit PeerState(std::size_t& outbox_bytes, Engine* of = nullptr)
        : engine(of),
          outbox{Outbox(fabric::Traffic::calls, outbox_bytes), Outbox(fabric::Traffic::replies, outbox_bytes)} {}

    // ---- whose it is: all that is asked of the peer is asked of the engine that has its links, which stays the same. Null: of none, in tests
    // of parts.
    Engine* const engine;

    // ---- who it is, as both said when they met
    NodeId id GUARDED_BY(lock_of<EngineLock>) = kNoNode;     // the peer's
    NodeId my_id GUARDED_BY(lock_of<EngineLock>) = kNoNode;  // mine, as the peer knows me
    bool member GUARDED_BY(lock_of<EngineLock>) = false;     // it joined: calls may be sent on to it
    // For a member: which of the processes that have had this id it is.
    wire::control::PublicKey process GUARDED_BY(lock_of<EngineLock>);
    std::string address GUARDED_BY(lock_of<EngineLock>);  // where to reach it again; empty for a client
    std::string triple GUARDED_BY(lock_of<EngineLock>);
    std::uint32_t node_count GUARDED_BY(lock_of<EngineLock>) = 1;
    std::uint32_t features GUARDED_BY(lock_of<EngineLock>) = 0;  // that both ends have: wire::control::kFeatures
    std::atomic<bool> has_residents{false};  // its program has functions of its own: what I call may be there already
    // The name by which this node addresses the peer as the origin of its frames: Routes::name_for.
    NodeId back GUARDED_BY(lock_of<EngineLock>) = kNoNode;

    // ---- how it is reached
    std::shared_ptr<fabric::Link> link GUARDED_BY(lock_of<EngineLock>);  // null: gone
    // Counts the engine's meetings: by which this link came; 0: there is none. What the peer keeps for this node (buffers) goes with it.
    // Written under the lock, read by anybody.
    std::atomic<std::uint64_t> meeting{0};
    std::string lane GUARDED_BY(lock_of<EngineLock>);
    std::optional<Error> lost GUARDED_BY(lock_of<EngineLock>);  // set by whoever notices; the leader cleans up
    // Since when the link has ended, and nobody has said why.
    std::optional<TimePoint> broken_since GUARDED_BY(lock_of<EngineLock>);
    // Whether it was a member when its link ended: clean_up() may be begun twice.
    std::optional<bool> left_as_member GUARDED_BY(lock_of<EngineLock>);
    // Why there is no link: what was said when the last one ended.
    std::string gone GUARDED_BY(lock_of<EngineLock>);
    // Ends the control connection, and tells the other end why.
    std::function<void(const Error&)> hang_up GUARDED_BY(lock_of<EngineLock>);
    std::array<Outbox, fabric::kTrafficKinds> outbox GUARDED_BY(lock_of<EngineLock>);  // by fabric::index_of
    Peer::Counters counters GUARDED_BY(lock_of<EngineLock>);

    // ---- what goes between the two
    CodeBetween code GUARDED_BY(lock_of<EngineLock>);
    CallsTaken calls GUARDED_BY(lock_of<EngineLock>);
    CallsSent sends GUARDED_BY(lock_of<EngineLock>);

    [[nodiscard]] Outbox& outbox_of(fabric::Traffic traffic) REQUIRES(lock_of<EngineLock>) {
        return outbox[fabric::index_of(traffic)];
    }
    [[nodiscard]] const Outbox& outbox_of(fabric::Traffic traffic) const REQUIRES(lock_of<EngineLock>) {
        return outbox[fabric::index_of(traffic)];
    }
    // Whether frames wait for room in its mailbox.
    [[nodiscard]] bool has_frames_waiting() const REQUIRES(lock_of<EngineLock>) {
        return !outbox[0].is_empty() || !outbox[1].is_empty();
    }
    [[nodiscard]] std::size_t bytes_waiting_in_all() const REQUIRES(lock_of<EngineLock>) {
        return outbox[0].bytes() + outbox[1].bytes();
    }
    // Both joined the same nodes: each is believed about the calls that it sends on.
    [[nodiscard]] bool is_fellow() const REQUIRES(lock_of<EngineLock>) { return member && !is_client(my_id); }
    // Whether it is a reply as nearly all are: to a call that was sent to this peer, without an error. Nothing else of it need be checked.
    [[nodiscard]] bool sends_plain_reply(const wire::Frame& frame) const REQUIRES(lock_of<EngineLock>) {
        return wire::is_plain<wire::Kind::reply>(frame, features) && frame.header.node == my_id;
    }
    // Its mailbox waits for code that it was asked for.
    [[nodiscard]] bool owes_code() const REQUIRES(lock_of<EngineLock>) {
        return calls.parked && calls.parked->waits_for_code_of(back);
    }
    // Known here by another name than by its id.
    [[nodiscard]] bool is_foreign() const REQUIRES(lock_of<EngineLock>) { return back != id; }
    // Whether there is a link that can be used.
    [[nodiscard]] bool linked() const REQUIRES(lock_of<EngineLock>) {
        return link && !lost && link->broken() == nullptr;
    }
    // Whether a call can be written into the mailbox at once, if there is room.
    [[nodiscard]] bool clear_way() const REQUIRES(lock_of<EngineLock>) {
        return linked() && outbox[0].is_empty() && !sends.frame_open;
    }
    // Whether it has so many replies to take that none of its calls is begun. Calls that a lost peer sent before its end are begun.
    [[nodiscard]] bool has_backlog() const REQUIRES(lock_of<EngineLock>) {
        return !lost && outbox_of(fabric::Traffic::replies).bytes() > kBacklogBytes;
    }
    // Whether the leader should look at it.
    [[nodiscard]] bool has_work() const REQUIRES(lock_of<EngineLock>) {
        return link && (link->pending() || has_frames_waiting() || link->broken() != nullptr);
    }
    // Frames of this meeting and of those before it.
    [[nodiscard]] Peer::Counters all_counters() const REQUIRES(lock_of<EngineLock>);
    // Forgets all that the peer may have forgotten: it was restarted. What waited for it goes there. Needs no memory.
    void forget_meeting(DroppedBytes& dropped) REQUIRES(lock_of<EngineLock>);
};

inline Peer::Counters PeerState::all_counters() const {
    Peer::Counters sum = counters;
    if (!link) return sum;
    const fabric::Link::Counters& now = link->counters();
    sum.frames_sent += now.frames_sent;
    sum.bytes_sent += now.bytes_sent;
    sum.frames_received += now.frames_received;
    return sum;
}

inline void CodeBetween::forget(DroppedBytes& dropped) {
    bindings.clear();
    sent_inline.clear();
    aliases.clear();
    sent.clear();
    arrival.clear(dropped);
    passed_on.clear(dropped);
    refused.reset();
    answers.clear();
}

inline void PeerState::forget_meeting(DroppedBytes& dropped) {
    meeting.store(0, std::memory_order_relaxed);
    link.reset();
    broken_since.reset();
    left_as_member.reset();
    for (Outbox& each : outbox) each.drop(dropped);
    code.forget(dropped);
    calls.parked.reset();
    (void)calls.staged.clear();
    calls.waits_to_stage = false;
    calls.gathering = nullptr;
    sends.sent_on = {};
    sends.frame_open = false;
}

}  // namespace rove
