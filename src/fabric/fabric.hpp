// Moving bytes. A Fabric opens Links; a Link connects this node and one peer by four mailboxes: in each direction one
// ring for calls and one for prompt frames (what must be delivered so that calls can end), each with separate credits, so
// that two nodes that flood each other cannot deadlock.
//
//     reserve -> write the frame in place -> publish        sender
//     next -> use the frame in place -> release             receiver
//
// A link's rings are either *direct* (the sender writes the peer's memory: shared memory, loopback) or *message* (the
// sender fills a local mirror of the ring and the transport carries it over a TCP or Unix socket, or by UCX). Callers see no difference.
//
// Threads: a Fabric and its Links are made, used and destroyed under one lock (the engine's), or by one thread. The peer's side is another
// thread or process. Without the lock: has_streams(), tidy(), and AwaitedSignal::arrived() while its link exists.
//
// Invariants: the frames of a ring are delivered in the order in which they were published, each once and complete. Except by UCX
// (ucx/ucx_fabric.hpp), nothing that the peer sends or writes is trusted: it can only break the link. A broken link stays broken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "fabric/board.hpp"
#include "fabric/cold_links.hpp"
#include "fabric/ring.hpp"
#include "wire/frame.hpp"

namespace rove::fabric {

// The word in which the next frame of a ring will be signalled, and the value that signals it.
struct AwaitedSignal {
    const std::uint64_t* word;
    std::uint64_t value;
    [[nodiscard]] bool arrived() const {
        return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(std::memory_order_acquire) == value;
    }
};

// The two kinds of traffic, which have a ring each. A call that cannot begin yet holds up the frames after it in the ring of calls. Prompt frames
// are never held up by a waiting call: replies, and everything else that must be delivered so that calls can end, such as code, questions for
// code, and handles (wire/kinds.hpp, KindRule::among_prompt).
enum class Traffic : std::uint8_t { calls = 0, prompt = 1 };
inline constexpr std::size_t kTrafficKinds = 2;
constexpr std::size_t index_of(Traffic traffic) {
    return static_cast<std::size_t>(traffic);
}

// How a link moves its frames. `direct`: it writes them into memory that both processes have mapped; so the peer is on this machine, and
// memory that it offers can be mapped here. `none`: it is not connected.
enum class Lane : std::uint8_t { none, direct, message };
[[nodiscard]] constexpr std::string_view name_of(Lane lane) {
    return lane == Lane::direct ? "direct" : lane == Lane::message ? "message" : "none";
}

class Link : public std::enable_shared_from_this<Link>, public MayBeCold {
public:
    ~Link() override = default;

    // --- meeting: both sides open a link, exchange offers (over the authenticated control connection), connect.

    // The bytes by which the peer reaches this side: addresses, keys, an unguessable token. Bounded by wire::control::kOfferBytesMax.
    [[nodiscard]] virtual const ByteBuffer& offer() const = 0;
    // Connects to the peer. unsupported: no transport reaches it.
    [[nodiscard]] virtual Status connect(Bytes peer_offer) = 0;
    // Both ends have connected: releases what the peer needed only to connect.
    virtual void settled() {}
    [[nodiscard]] virtual Lane lane() const = 0;

    // Whether its frames are sent as messages, for which progress() must be called.
    [[nodiscard]] bool by_messages() const { return by_messages_; }

    // --- sending

    // Room for a frame of that many bytes (header included) in the peer's ring, 64-byte aligned; null if the ring has
    // no credit for it now. The caller fills the frame (all but the signal word) and publishes it before it reserves
    // again on the same traffic. Precondition: kHeaderBytes <= frame_bytes <= wire::kFrameBytesMax.
    [[nodiscard]] std::byte* reserve(Traffic traffic, std::size_t frame_bytes) {
        RingWriter& ring = outgoing_[index_of(traffic)];
        if (broken_ || !ring.connected()) return nullptr;
        if (std::byte* frame = ring.reserve(frame_bytes)) return frame;
        return reserve_rarely(traffic, frame_bytes);
    }
    // To be called shortly before a frame is written: prefetches the cache line of its header for writing, while the writer does
    // something else. A call that is too early has no effect, because the reader polls that line and so fetches it back. Half a round
    // trip takes 235 ns with it and 320 ns without (two distant cores of a Zen 5; `rove bench latency`).
    void own_next(Traffic traffic) const {
        if (const RingWriter& ring = outgoing_[index_of(traffic)]; ring.connected()) ring.own_next();
    }
    // Whether there is room; may reload the peer's credit, and keeps pages that nobody has begun to free. Also true if the link is broken, which
    // reserve() will report.
    [[nodiscard]] bool has_room(Traffic traffic, std::size_t frame_bytes) {
        if (pages_are_lent_) take_pages_back(/*wanted=*/true);
        RingWriter& ring = outgoing_[index_of(traffic)];
        return broken_ || ring.credit_is_wrong() || !ring.connected() || ring.has_room(frame_bytes);
    }
    // Makes the reserved frame visible to the peer, and rings if the peer sleeps. Writes the header, the signal last. Inlined, because a
    // header that the caller stored field by field would otherwise be read back by wider loads, which wait until all earlier stores
    // are in the cache, including those to the mailbox.
    [[gnu::always_inline]] void publish(Traffic traffic, const wire::FrameHeader& header) {
        RingWriter& ring = outgoing_[index_of(traffic)];
        const std::uint64_t position = ring.head();
        ring.publish(header);
        warm();  // most frames are answered
        ++counters_.frames_sent;
        counters_.bytes_sent += wire::kHeaderBytes + header.body_bytes;
        if (by_messages_) return transmit(traffic, position, (wire::kHeaderBytes + header.body_bytes + 7) / 8 * 8);
        if (peer_wants_wake()) this->wake_peer();
    }

    // --- receiving

    // The next frame, if one has arrived completely; it stays valid until release(). Fillers are skipped. A malformed
    // frame breaks the link: broken() reports it, and nothing more is delivered.
    // only_alike: only if it is like the one in `frame`, which was given before and has been released (RingReader::next_alike()).
    [[nodiscard, gnu::always_inline]] bool next(Traffic traffic, wire::Frame& frame, bool only_alike = false) {
        if (!delivers()) return false;
        if (only_alike) return incoming_[index_of(traffic)].next_alike(frame);
        const RingReader::Arrival arrival = incoming_[index_of(traffic)].next(frame);
        if (arrival == RingReader::Arrival::malformed) break_with_malformed();
        return arrival == RingReader::Arrival::frame;
    }
    // Gives the frame's room back; credits are sent to the peer as RingReader::take_due_credit() says.
    void release(Traffic traffic) {
        RingReader& ring = incoming_[index_of(traffic)];
        ring.release();
        ++counters_.frames_received;
        if (ring.take_due_credit()) transmit_credit(traffic);
    }
    // Advances to the next frame; this one stays in use until let_go() is called with the returned value. The room of the frames after it is
    // given back together with its own. Never fails, because a function that runs has no call left to fail: see RingReader::hold().
    [[nodiscard]] std::uint64_t hold(Traffic traffic) noexcept;
    void let_go(Traffic traffic, std::uint64_t held);
    // Whether frames in use leave the peer no room for the largest frame: then the peer cannot be blamed if it sends nothing.
    [[nodiscard]] bool keeps_back(Traffic traffic) const { return incoming_[index_of(traffic)].keeps_back(); }
    // Whether there is anything to deliver. Cheap; for the last check before sleep.
    [[nodiscard]] bool pending(bool calls_too = true) const {
        return delivers() && ((calls_too && incoming_[0].pending()) || incoming_[1].pending());
    }
    // Appends the signals of the next frames, which can be checked without the lock for as long as the link exists.
    void await(std::vector<AwaitedSignal>& signals, bool calls_too) const;

    // --- memory: what a link touches while it is used, and does not need while it is quiet

    // To be called every second or less often. A link over which hardly anything has come or gone since the last time (kFewFrames) gives the
    // peer credit for all that was read, so that the peer can do the same, and once the peer has given back all that was sent, the pages of its
    // rings go back to the kernel, but for those of the next frames: true, and it has taken some time. Precondition: no frame is reserved.
    [[nodiscard]] bool tend_memory();

    // --- ends

    // The reason why nothing can be sent any more, or null.
    [[nodiscard]] const Error* broken() const { return broken_ ? &*broken_ : nullptr; }
    // This side ends the link, because the peer broke a rule or reads too little: nothing more is accepted from it.
    void break_with(Error why);
    // Whether the transport ended, and not by break_with(): frames that have arrived completely are still delivered.
    [[nodiscard]] bool has_ended() const { return ended_; }

    // Bytes of frames published / frames published, for reports.
    struct Counters {
        std::uint64_t frames_sent = 0, bytes_sent = 0, frames_received = 0;
    };
    [[nodiscard]] const Counters& counters() const { return counters_; }
    // The lines written to the ring, and the lines that the peer has given back. Calls in the lines between may or may not have
    // run. (Needed to report to the callers of calls that were in a dead peer's mailbox.)
    [[nodiscard]] std::uint64_t lines_published(Traffic traffic) const { return outgoing_[index_of(traffic)].head(); }
    [[nodiscard]] std::uint64_t lines_credited(Traffic traffic);
    // All lines read so far.
    [[nodiscard]] std::uint64_t lines_read(Traffic traffic) const { return incoming_[index_of(traffic)].tail(); }
    // The frames between lines_credited() and lines_published(), each complete, header first, in order. The list ends at a frame that a
    // direct peer has corrupted in its memory.
    [[nodiscard]] std::vector<ByteBuffer> untaken(Traffic traffic);

protected:
    // To be called when the transport has ended.
    void end_with(Error why);

    // Message links: send that many bytes of the ring, from the line `position` on, to the peer / send the credit. Direct links: nothing.
    virtual void transmit(Traffic traffic, std::uint64_t position, std::size_t bytes) = 0;
    virtual void transmit_credit(Traffic traffic) = 0;
    // Gives pages of the rings back to the kernel: of the rings that this end writes, which are empty, and of those that it reads if no other
    // process has mapped them. being_freed: another thread does that, until pages_are_free(). kept: they stay, for now or for good.
    enum class Pages : std::uint8_t { kept, freed, being_freed };
    // Whether its rings have taken more than they take at first. Only these go back while a peer calls now and then.
    [[nodiscard]] virtual bool has_many_pages() const {
        return outgoing_[0].pages().touched() > kLinesAtFirst || outgoing_[1].pages().touched() > kLinesAtFirst;
    }
    virtual Pages free_pages() { return Pages::kept; }
    [[nodiscard]] virtual bool pages_are_free() const { return true; }
    // Gives up what another thread is to free and has not begun with. False: it has begun.
    [[nodiscard]] virtual bool keep_pages() noexcept { return false; }
    // Direct links: whether the peer does not look at what was sent, and is to be woken. On message links the message itself wakes it.
    [[nodiscard]] bool peer_wants_wake() const {
        if (wanted_ == nullptr) return peer_here_wants_wake();
        // If the sleeper's barrier is available, no fence is needed here: see SleepFence.
        if (sleeper_pays_->load(std::memory_order_acquire))
            std::atomic_signal_fence(std::memory_order_seq_cst);
        else
            std::atomic_thread_fence(std::memory_order_seq_cst);
        return std::atomic_ref(*wanted_).load(std::memory_order_relaxed) != Wanted::nothing;
    }
    // The same for links within one process, which set no `wanted_`.
    [[nodiscard]] virtual bool peer_here_wants_wake() const { return false; }
    // Wakes the peer.
    virtual void wake_peer() = 0;
    [[nodiscard]] std::uint64_t frames_seen() const override { return counters_.frames_received + (pending() ? 1 : 0); }

    bool by_messages_ = false;                         // frames need transmit()
    Wanted* wanted_ = nullptr;                         // of the peer's region
    const std::atomic<bool>* sleeper_pays_ = nullptr;  // set with wanted_
    // The derived class sets these: outgoing_ at connect, incoming_ when the link is opened.
    RingWriter outgoing_[kTrafficKinds];
    RingReader incoming_[kTrafficKinds];
    std::optional<Error> broken_;
    Counters counters_;

private:
    [[nodiscard]] bool delivers() const { return !broken_ || ended_; }
    [[nodiscard]] std::byte* reserve_rarely(Traffic traffic, std::size_t frame_bytes);
    void break_with_malformed();
    void take_pages_back(bool wanted);
    bool ended_ = false;  // broken_ is set because the transport ended
    static constexpr std::uint64_t kFewFrames = 16;
    std::uint64_t frames_when_tended_ = 0;  // sent and received, when tend_memory() was last called
    bool has_pages_ = true;                 // … and not all pages have been given back since
    bool pages_are_lent_ = false;           // they are being freed, and not to be written until they are
};

// Frames of a message lane are coalesced if the previous message was sent less than this time ago. This is about the time that a message
// takes, so the lane is never idle in between.
inline constexpr auto kCoalesceFor = std::chrono::microseconds(5);

// The keys of a stream lane's rings (ring.hpp), random numbers that both ends know: one for the frames that this end receives, one for
// those that it sends.
struct StreamKeys {
    std::uint64_t incoming = 0, outgoing = 0;
};

class Fabric {
public:
    virtual ~Fabric() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;
    // Allocates the incoming mailboxes of a link that is connected by exchanging offers. unsupported: this fabric has no such links.
    [[nodiscard]] virtual Result<std::unique_ptr<Link>> open_link() = 0;
    // Whether open_stream() is supported. Constant.
    [[nodiscard]] virtual bool has_streams() const { return false; }
    // A link over a stream socket that is connected already, and over which the two ends have authenticated each other. Takes ownership of
    // the socket, also if it fails. unsupported: this fabric has no such lane.
    [[nodiscard]] virtual Result<std::unique_ptr<Link>> open_stream(int socket, const StreamKeys& keys);
    // Sends and receives what is due (messages, credits, doorbells). Returns the number of events handled.
    virtual unsigned progress() = 0;
    // Whether frames arrive only during calls of progress().
    [[nodiscard]] virtual bool needs_progress() const = 0;

    // --- cold links: a receiver does not look at links over which nothing has come for some time, but at one word for all of them. Makes these
    // cold, except those over which something has arrived, and those that cannot be. It interrupts all senders for a moment (SleepFence), so
    // many are to be cooled at once. Links that have ended are not to be cooled. Without memory some stay warm.
    void cool(std::span<Link* const> links) noexcept;
    // Whether links have become warm again. To be asked once a turn.
    [[nodiscard]] bool has_warmed() noexcept {
        if (board_ != nullptr && board_->is_due()) take_board();
        return cold_links_.has_warmed();
    }
    // The next of them. Precondition: has_warmed() was true, and this was not called for all of them.
    [[nodiscard]] Link& take_warmed() noexcept { return static_cast<Link&>(cold_links_.take_warmed()); }
    // Whether some may have; for the last check before sleep.
    [[nodiscard]] bool may_have_warmed(TimePoint now) {
        return cold_links_.has_warmed() || (board_ != nullptr && board_->is_set() && !board_->ignored_until(now));
    }
    // Some may have, and it is not to be asked before that, because peers have said so in vain (Board).
    [[nodiscard]] std::optional<TimePoint> warmed_not_before(TimePoint now) {
        return board_ != nullptr ? board_->ignored_until(now) : std::nullopt;
    }
    // Looks at so many of the cold links, each time at the next ones: a peer can take back what others have said by means of the board. A look takes
    // 0.3 us, because their mailboxes are in nobody's cache.
    void look_at_cold(std::size_t links) noexcept;
    [[nodiscard]] std::size_t cold_count() const { return cold_links_.cold().size(); }
    [[nodiscard]] bool has_cold() const { return !cold_links_.cold().empty(); }
    // Whether look_at_cold() is needed: some cold links are on a board.
    [[nodiscard]] virtual bool has_cold_on_board() const { return board_ != nullptr && has_cold(); }
    // The word that is not zero once something has come over a cold link, for threads that spin without the lock. Null: none is to be
    // looked at.
    [[nodiscard]] const std::uint64_t* cold_word() { return has_cold_on_board() ? board_->summary() : nullptr; }

    // --- sleep: descriptors() are for epoll (level-triggered, readable = wake). To sleep: announce_sleep(); if it returns
    // false something has arrived already; otherwise check every warm link's pending() and may_have_warmed() once more, wait,
    // not beyond warmed_not_before(), then end_sleep().
    [[nodiscard]] virtual std::vector<int> descriptors() const = 0;
    [[nodiscard]] virtual bool announce_sleep() = 0;
    virtual void end_sleep() = 0;

    // To be called once a second or so, by any thread, and without the lock, because peers can hold it up: closes what has not been used for some
    // time.
    virtual void tidy() noexcept {}

protected:
    // What links that are about to be cold have announced is to be seen by all senders that have not stored their signals yet.
    virtual void settle_announcements() noexcept {}
    Board* board_ = nullptr;  // of the derived class, where its links have one

private:
    void take_board() noexcept;
    void warm_if_pending(std::size_t place) noexcept;
    ColdLinks cold_links_;
    std::size_t looked_at_ = 0;  // the place of the cold link that was looked at last
};

}  // namespace rove::fabric
