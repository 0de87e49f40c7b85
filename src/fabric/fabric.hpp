// Moving bytes. A Fabric gives Links; a Link joins this node and one peer by four mailboxes: in each direction one
// ring for calls and one for replies (everything that must move so that calls can end), each with credits of its own, so
// that two nodes that flood each other cannot deadlock.
//
//     reserve -> write the frame in place -> publish        sender
//     next -> use the frame in place -> release             receiver
//
// A link's rings are either *direct* (the sender writes the peer's memory: shared memory, loopback) or *message* (the
// sender fills a local mirror of the ring and the transport carries it over a TCP or Unix socket, or by UCX). Callers cannot tell.
//
// Threads: a Fabric and its Links are used under one lock, or by one thread; the peer's side is another thread or process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "fabric/ring.hpp"
#include "wire/frame.hpp"

namespace rove::fabric {

// Where the next frame of a ring will be announced, and by which word.
struct AwaitedSignal {
    const std::uint64_t* word;
    std::uint64_t value;
    [[nodiscard]] bool arrived() const {
        return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(std::memory_order_acquire) == value;
    }
};

enum class Traffic : std::uint8_t { calls = 0, replies = 1 };
inline constexpr std::size_t kTrafficKinds = 2;
constexpr std::size_t index_of(Traffic traffic) {
    return static_cast<std::size_t>(traffic);
}

class Link : public std::enable_shared_from_this<Link> {
public:
    virtual ~Link() = default;

    // --- meeting: both sides open a link, exchange offers (over the authenticated control connection), connect.

    // What the peer needs to reach this side: addresses, keys, an unguessable token. Bounded by wire::control::kOfferBytesMax.
    [[nodiscard]] virtual const ByteBuffer& offer() const = 0;
    // Opens the way to the peer. unsupported: no transport reaches it.
    [[nodiscard]] virtual Status connect(Bytes peer_offer) = 0;
    // Both ends have connected: what was kept for the peer to connect by is given up.
    virtual void settled() {}
    // "direct" or "message" once connected; for people.
    [[nodiscard]] virtual std::string_view lane() const = 0;

    // Whether its frames travel by messages, which somebody has to progress.
    [[nodiscard]] bool by_messages() const { return by_messages_; }

    // --- sending

    // Room for a frame of that many bytes (header included) in the peer's ring, 64-byte aligned; null when the ring has
    // no credit for it now. The caller fills the frame (all but the signal word) and publishes it before it reserves
    // again on the same traffic. Precondition: kHeaderBytes <= frame_bytes <= wire::kFrameBytesMax.
    [[nodiscard]] std::byte* reserve(Traffic traffic, std::size_t frame_bytes) {
        RingWriter& ring = outgoing_[index_of(traffic)];
        if (broken_ || !ring.connected()) return nullptr;
        if (std::byte* frame = ring.reserve(frame_bytes)) return frame;
        return reserve_rarely(traffic, frame_bytes);
    }
    // To be called shortly before a frame is written: asks for the cache line of its header, so that the line is on its way while the
    // writer does something else. Called too early it is of no use, because the reader polls that line and takes it back. Half a round trip
    // takes 235 ns with it and 320 ns without (two distant cores of a Zen 5; `rove bench latency`).
    void own_next(Traffic traffic) const {
        if (const RingWriter& ring = outgoing_[index_of(traffic)]; ring.connected()) ring.own_next();
    }
    // Whether there is room, or the link is broken and reserve() will say so.
    [[nodiscard]] bool has_room(Traffic traffic, std::size_t frame_bytes) {
        RingWriter& ring = outgoing_[index_of(traffic)];
        return broken_ || ring.credit_is_wrong() || !ring.connected() || ring.has_room(frame_bytes);
    }
    // Makes the reserved frame visible to the peer, and rings if the peer sleeps. Writes the header, the signal last. In line: a header
    // that its caller has put together field by field would be read back by wider loads, and they wait until all stores before them
    // are in the cache, those into the mailbox as well.
    [[gnu::always_inline]] void publish(Traffic traffic, const wire::FrameHeader& header) {
        RingWriter& ring = outgoing_[index_of(traffic)];
        const std::uint64_t position = ring.head();
        ring.publish(header);
        ++counters_.frames_sent;
        counters_.bytes_sent += wire::kHeaderBytes + header.body_bytes;
        if (by_messages_) return transmit(traffic, position, (wire::kHeaderBytes + header.body_bytes + 7) / 8 * 8);
        if (peer_sleeps()) this->ring();
    }

    // --- receiving

    // The next frame, if one has arrived whole; it stays valid until release(). Fillers are passed over. A malformed
    // frame breaks the link: broken() tells, and nothing is delivered any more.
    [[nodiscard, gnu::always_inline]] bool next(Traffic traffic, wire::Frame& frame) {
        if (!delivers()) return false;
        const RingReader::Arrival arrival = incoming_[index_of(traffic)].next(frame);
        if (arrival == RingReader::Arrival::malformed) break_with_malformed();
        return arrival == RingReader::Arrival::frame;
    }
    // Gives the frame's room back; credits go to the peer once per bank.
    void release(Traffic traffic) {
        RingReader& ring = incoming_[index_of(traffic)];
        ring.release();
        ++counters_.frames_received;
        if (ring.credit_due()) transmit_credit(traffic);
    }
    // Goes on to the next frame while this one stays in use until let_go() of the value given. The room of the frames behind
    // it is given back with its own.
    [[nodiscard]] std::uint64_t hold(Traffic traffic);
    void let_go(Traffic traffic, std::uint64_t held);
    // Whether frames in use leave the peer no room for the largest frame: that it sends nothing is not its doing.
    [[nodiscard]] bool keeps_back(Traffic traffic) const { return incoming_[index_of(traffic)].keeps_back(); }
    // Is there anything to deliver? Cheap; for the last look before sleep.
    [[nodiscard]] bool pending(bool calls_too = true) const {
        return delivers() && ((calls_too && incoming_[0].pending()) || incoming_[1].pending());
    }
    // Adds the next frames' signals: for a look that needs no lock, as long as the link lives.
    void await(std::vector<AwaitedSignal>& signals, bool calls_too) const;

    // --- ends

    // Why nothing can be sent any more, or null.
    [[nodiscard]] const Error* broken() const { return broken_ ? &*broken_ : nullptr; }
    // This side ends it, because the other one broke a rule or takes too little: nothing more of it is believed.
    void break_with(Error why);
    // Whether the transport ended under it, and nobody here wanted that: what has arrived whole is still delivered.
    [[nodiscard]] bool has_ended() const { return ended_; }

    // Bytes of frames published / frames published, for reports.
    struct Counters {
        std::uint64_t frames_sent = 0, bytes_sent = 0, frames_received = 0;
    };
    [[nodiscard]] const Counters& counters() const { return counters_; }
    // Where the ring stands: lines written, and lines that the peer has given back. What lies between may or may not have
    // run. (For telling the callers of what was in a dead peer's mailbox.)
    [[nodiscard]] std::uint64_t lines_published(Traffic traffic) const { return outgoing_[index_of(traffic)].head(); }
    [[nodiscard]] std::uint64_t lines_credited(Traffic traffic);
    // Lines read of what has come, ever.
    [[nodiscard]] std::uint64_t lines_read(Traffic traffic) const { return incoming_[index_of(traffic)].tail(); }
    // What lies between: whole frames, header first, in their order. What a direct peer has spoilt in its memory ends the list.
    [[nodiscard]] std::vector<ByteBuffer> untaken(Traffic traffic);

protected:
    // The transport ended.
    void end_with(Error why);

    // Message links: carry that many bytes of the ring, from the line `position` on, to the peer / carry the credit. Direct: nothing.
    virtual void transmit(Traffic traffic, std::uint64_t position, std::size_t bytes) = 0;
    virtual void transmit_credit(Traffic traffic) = 0;
    // Direct links: has the peer announced that it sleeps? Message links wake by the message itself.
    [[nodiscard]] bool peer_sleeps() const {
        if (asleep_ == nullptr) return peer_asleep();
        // The sleeper's barrier makes a fence here needless, where it can be had: see SleepFence.
        if (sleeper_pays_->load(std::memory_order_acquire))
            std::atomic_signal_fence(std::memory_order_seq_cst);
        else
            std::atomic_thread_fence(std::memory_order_seq_cst);
        return std::atomic_ref(*asleep_).load(std::memory_order_relaxed) != 0;
    }
    // The same for links that set no `asleep_`.
    [[nodiscard]] virtual bool peer_asleep() const { return false; }
    // Wakes it.
    virtual void ring() = 0;

    bool by_messages_ = false;                         // frames need transmit()
    std::uint32_t* asleep_ = nullptr;                  // in the peer's region
    const std::atomic<bool>* sleeper_pays_ = nullptr;  // set with asleep_
    // The derived class wires these up: outgoing_ at connect, incoming_ when the link is opened.
    RingWriter outgoing_[kTrafficKinds];
    RingReader incoming_[kTrafficKinds];
    std::optional<Error> broken_;
    Counters counters_;

private:
    [[nodiscard]] bool delivers() const { return !broken_ || ended_; }
    [[nodiscard]] std::byte* reserve_rarely(Traffic traffic, std::size_t frame_bytes);
    void break_with_malformed();
    bool ended_ = false;  // broken_ is the transport's end
};

// Frames of a lane of messages share a message when the one before them was sent less than this long ago: about what a message costs,
// so that the lane is never idle in between.
inline constexpr auto kGatherFor = std::chrono::microseconds(5);

// The keys of a stream lane's rings (ring.hpp), random numbers that both ends know: one for what this end receives, one for
// what it sends.
struct StreamKeys {
    std::uint64_t incoming = 0, outgoing = 0;
};

class Fabric {
public:
    virtual ~Fabric() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;
    // Allocates the incoming mailboxes of a link that offers connect. unsupported: this fabric has none of that kind.
    [[nodiscard]] virtual Result<std::unique_ptr<Link>> open_link() = 0;
    // Whether open_stream() gives links. Constant.
    [[nodiscard]] virtual bool has_streams() const { return false; }
    // A link over a stream socket that is connected already, by which the two ends proved who they are. Takes the socket,
    // also where it fails. unsupported: this fabric has no such lane.
    [[nodiscard]] virtual Result<std::unique_ptr<Link>> open_stream(int socket, const StreamKeys& keys);
    // Moves what needs moving (messages, credits, doorbells). Returns how many events it handled.
    virtual unsigned progress() = 0;
    // Whether frames arrive only while somebody calls progress().
    [[nodiscard]] virtual bool needs_progress() const = 0;

    // --- sleep: descriptors() are for epoll (level-triggered, readable = wake). To sleep: announce_sleep(); if it gives
    // false something is already there; else look at every link's pending() once more, wait, then end_sleep().
    [[nodiscard]] virtual std::vector<int> descriptors() const = 0;
    [[nodiscard]] virtual bool announce_sleep() = 0;
    virtual void end_sleep() = 0;
};

}  // namespace rove::fabric
