// PeerState: what one peer is to an engine: who it is, the link to it, the frames that wait to be sent, and what the two have sent each
// other about code and calls. A peer that is met again is the same object.
//
// Threads: under the lock of its engine, but for `engine`, has_residents() and meeting(), which any thread may read.
//
// Invariants:
// - meeting() is not 0 exactly while there is a link. What is known against a link (lost(), since when it has ended, whether a member left)
//   and the way to end its control connection exist only while the link does.
// - lost() is the first reason that was given; later ones are dropped.
// - With its link ends all that the other end may have forgotten by the next meeting: frames that wait, and what `code`, `calls` and `sends`
//   forget() (which say what stays).
// - back() is set by the first meeting. Routes has the peer under that name while it has a link, and keeps a foreign name for the next one.
// - all_counters() only grow: they add up over all links.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "fabric/fabric.hpp"
#include "lead/engine_lock.hpp"
#include "peer/calls_sent.hpp"
#include "peer/calls_taken.hpp"
#include "peer/code_between.hpp"
#include "peer/dropped_bytes.hpp"
#include "peer/outbox.hpp"
#include "peer/peer_identity.hpp"
#include "rove/node.hpp"
#include "wire/kinds.hpp"

namespace rove {

// While a peer has this much of its replies to take, no more of its calls are begun. Mostly such a peer takes as fast as it can, and
// functions only answer faster.
inline constexpr std::size_t kBacklogBytes = kOutboxBytesMax / 8;
// While it has this much, a function that replies to it waits until some of it is taken: one that had begun before, or that answers later.
inline constexpr std::size_t kFullBacklogBytes = kOutboxBytesMax / 2;

// How long a link that ended is kept for the goodbye on the control connection, which says why: its own socket's end usually arrives
// first, by some 100 us, by 20 ms where both processes want one busy core, and by more where a machine stands still for a while. A
// process that dies ends both at once, so only a link that was cut alone is kept so long.
inline constexpr auto kGoodbyeWait = std::chrono::seconds(1);

class Engine;
class WarmPeers;

class PeerState final : public std::enable_shared_from_this<PeerState>, public fabric::LinkHolder {
public:
    // Ends the control connection, and sends the other end the reason. May throw std::bad_alloc, and is called again then.
    using HangUp = std::function<void(const Error&)>;

    // `outbox_bytes`: of all peers of the engine (Outbox).
    explicit PeerState(std::size_t& outbox_bytes, Engine* of = nullptr)
        : engine(of),
          outbox_{Outbox(fabric::Traffic::calls, outbox_bytes), Outbox(fabric::Traffic::prompt, outbox_bytes)} {}

    // Whose it is: all that is asked of the peer is asked of the engine that has its links, which stays the same. Null: of none, in tests of
    // parts.
    Engine* const engine;

    // ---- what the two have between them; each part keeps its own rules
    CodeBetween code GUARDED_BY(lock_of<EngineLock>);
    CallsTaken calls GUARDED_BY(lock_of<EngineLock>);
    CallsSent sends GUARDED_BY(lock_of<EngineLock>);

    // ---- who it is
    [[nodiscard]] const PeerIdentity& identity() const REQUIRES(lock_of<EngineLock>) { return identity_; }
    [[nodiscard]] NodeId id() const REQUIRES(lock_of<EngineLock>) { return identity_.id; }
    [[nodiscard]] NodeId my_id() const REQUIRES(lock_of<EngineLock>) { return identity_.my_id; }
    [[nodiscard]] bool is_member() const REQUIRES(lock_of<EngineLock>) { return identity_.member; }
    // The same as in its identity, for any thread.
    [[nodiscard]] bool has_residents() const { return has_residents_.load(std::memory_order_relaxed); }
    // The name by which this node addresses the peer as the origin of its frames: Routes::name_for. kNoNode: it has not been met yet.
    [[nodiscard]] NodeId back() const REQUIRES(lock_of<EngineLock>) { return back_; }
    // Known here by another name than by its id.
    [[nodiscard]] bool is_foreign() const REQUIRES(lock_of<EngineLock>) { return back_ != identity_.id; }
    // An answer as this peer reads it: each end of a link to a foreign peer has names of its own for both nodes. `here`: this node.
    [[nodiscard]] wire::FrameHeader addressed(wire::FrameHeader answer, NodeId here) const
        REQUIRES(lock_of<EngineLock>) {
        if (!is_foreign()) return answer;
        answer.node = identity_.id;
        if (wire::is_answer(answer.kind) && answer.handle == here) answer.handle = identity_.my_id;
        return answer;
    }
    // Both joined the same nodes: each is believed about the calls that it sends on.
    [[nodiscard]] bool is_fellow() const REQUIRES(lock_of<EngineLock>) {
        return identity_.member && !is_client(identity_.my_id);
    }

    // ---- how it is reached
    // Null: not at all.
    [[nodiscard]] const std::shared_ptr<fabric::Link>& link() const REQUIRES(lock_of<EngineLock>) { return link_; }
    // Counts the engine's meetings: by which this link came; 0: there is none. What the peer keeps for this node (buffers) ends with it.
    [[nodiscard]] std::uint64_t meeting() const { return meeting_.load(std::memory_order_relaxed); }
    // Of the link, or of the last one.
    [[nodiscard]] fabric::Lane lane() const REQUIRES(lock_of<EngineLock>) { return lane_; }
    // Why the link is of no use any more, as somebody has noticed; the leader ends it soon.
    [[nodiscard]] const std::optional<Error>& lost() const REQUIRES(lock_of<EngineLock>) { return lost_; }
    // Why there is no link: the reason that the last one ended, from the beginning of its end.
    [[nodiscard]] const std::string& gone() const REQUIRES(lock_of<EngineLock>) { return gone_; }
    // Whether there is a link that can be used.
    [[nodiscard]] bool linked() const REQUIRES(lock_of<EngineLock>) {
        return link_ && !lost_ && link_->broken() == nullptr;
    }
    // Frames of this meeting and of those before it.
    [[nodiscard]] Peer::Counters all_counters() const REQUIRES(lock_of<EngineLock>);
    // A call, a post, a batch or a ping of this many bytes is sent to it.
    void count_call(std::uint32_t frame_bytes) REQUIRES(lock_of<EngineLock>) {
        counters_.frame_bytes_last = frame_bytes;
    }
    void count_code_sent(std::size_t bytes) REQUIRES(lock_of<EngineLock>) { counters_.code_bytes_sent += bytes; }

    // ---- the life of a link
    // The peer is met: `as` replaces all of its identity, but an empty address leaves the known one. Preconditions: there is no link, and
    // `number` is not 0. Throws std::bad_alloc, and nothing has changed.
    void meet(PeerIdentity as, NodeId back, std::shared_ptr<fabric::Link> link, std::uint64_t number, HangUp hang_up)
        REQUIRES(lock_of<EngineLock>);
    // Somebody knows that the link is of no use any more. Precondition: there is one. Needs no memory.
    void lose(Error why) REQUIRES(lock_of<EngineLock>);
    // Whether the link has ended, nobody has said why, and the goodbye that says it may still arrive. It is waited for from the first look on.
    [[nodiscard]] bool awaits_goodbye(TimePoint now) REQUIRES(lock_of<EngineLock>);
    // Precondition: awaits_goodbye() was true for this link.
    [[nodiscard]] TimePoint goodbye_until() const REQUIRES(lock_of<EngineLock>) {
        return *broken_since_ + kGoodbyeWait;
    }
    // From here on the link ends, and gone() is the reason. May be called again, after a step of the end found no memory. Precondition: there
    // is a link.
    void begin_end() REQUIRES(lock_of<EngineLock>);
    // Records whether it is a member's link that ends, and returns it. The first answer stays, because a step may be repeated.
    [[nodiscard]] bool leaves_as_member(bool is_entered) REQUIRES(lock_of<EngineLock>) {
        if (!left_as_member_) left_as_member_ = is_entered;
        return *left_as_member_;
    }
    // Ends the control connection, once in a meeting.
    void hang_up(const Error& why) REQUIRES(lock_of<EngineLock>);
    // Forgets all that the peer may have forgotten, because it may have been restarted; frames that waited for it go into `dropped`. Returns
    // the link, which a function may still use; null: there was none. Needs no memory.
    std::shared_ptr<fabric::Link> end_meeting(DroppedBytes& dropped) REQUIRES(lock_of<EngineLock>);

    // ---- frames that wait for room in its mailbox
    [[nodiscard]] Outbox& outbox_of(fabric::Traffic traffic) REQUIRES(lock_of<EngineLock>) {
        return outbox_[fabric::index_of(traffic)];
    }
    [[nodiscard]] const Outbox& outbox_of(fabric::Traffic traffic) const REQUIRES(lock_of<EngineLock>) {
        return outbox_[fabric::index_of(traffic)];
    }
    [[nodiscard]] bool has_frames_waiting() const REQUIRES(lock_of<EngineLock>) {
        return !outbox_[0].is_empty() || !outbox_[1].is_empty();
    }
    [[nodiscard]] std::size_t bytes_waiting_in_all() const REQUIRES(lock_of<EngineLock>) {
        return outbox_[0].bytes() + outbox_[1].bytes();
    }

    // ---- what may be done with it now
    // Whether a call can be written into the mailbox at once, if there is room.
    [[nodiscard]] bool clear_way() const REQUIRES(lock_of<EngineLock>) {
        return linked() && outbox_[0].is_empty() && !sends.has_open_frame();
    }
    // Whether it is a reply as nearly all are: to a call that was sent to this peer, without an error. Nothing else of it need be checked.
    [[nodiscard]] bool sends_plain_reply(const wire::Frame& frame) const REQUIRES(lock_of<EngineLock>) {
        return wire::is_plain<wire::Kind::reply>(frame, identity_.features) && frame.header.node == identity_.my_id;
    }
    // Its mailbox waits for code that it was asked for.
    [[nodiscard]] bool owes_code() const REQUIRES(lock_of<EngineLock>) {
        return calls.parked && calls.parked->waits_for_code_of(back_);
    }
    // Whether it has so many replies to take that none of its calls is begun. Calls that a lost peer sent before its end are begun.
    [[nodiscard]] bool has_backlog() const REQUIRES(lock_of<EngineLock>) {
        return !lost_ && outbox_of(fabric::Traffic::prompt).bytes() > kBacklogBytes;
    }
    // Whether frames were sent or received since this was asked last.
    [[nodiscard]] bool note_traffic() REQUIRES(lock_of<EngineLock>) {
        const fabric::Link::Counters& now = link_->counters();
        const std::uint64_t before = std::exchange(frames_at_look_, now.frames_sent + now.frames_received);
        return before != frames_at_look_;
    }
    // It is among the peers that a leader looks at from here on.
    void link_warmed() noexcept override;

private:
    friend class PeerList;
    friend class WarmPeers;
    WarmPeers* warm_peers_ GUARDED_BY(lock_of<EngineLock>) = nullptr;  // its engine's
    static constexpr std::size_t kNotWarm = ~std::size_t{0};
    std::size_t warm_at_ GUARDED_BY(lock_of<EngineLock>) = kNotWarm;  // its place among them

    PeerIdentity identity_ GUARDED_BY(lock_of<EngineLock>);
    std::atomic<bool> has_residents_{false};
    NodeId back_ GUARDED_BY(lock_of<EngineLock>) = kNoNode;

    std::shared_ptr<fabric::Link> link_ GUARDED_BY(lock_of<EngineLock>);
    std::atomic<std::uint64_t> meeting_{0};  // written under the lock
    fabric::Lane lane_ GUARDED_BY(lock_of<EngineLock>) = fabric::Lane::none;
    std::optional<Error> lost_ GUARDED_BY(lock_of<EngineLock>);
    std::optional<TimePoint> broken_since_ GUARDED_BY(lock_of<EngineLock>);
    std::optional<bool> left_as_member_ GUARDED_BY(lock_of<EngineLock>);
    std::string gone_ GUARDED_BY(lock_of<EngineLock>);
    HangUp hang_up_ GUARDED_BY(lock_of<EngineLock>);
    std::array<Outbox, fabric::kTrafficKinds> outbox_ GUARDED_BY(lock_of<EngineLock>);  // by fabric::index_of
    Peer::Counters counters_ GUARDED_BY(lock_of<EngineLock>);                           // of the links before this one
    std::uint64_t frames_at_look_ GUARDED_BY(lock_of<EngineLock>) = 0;
};

}  // namespace rove
