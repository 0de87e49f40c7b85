// Outbox: the frames of one traffic that wait for room in a peer's mailbox, in the order in which they were sent.
//
// Threads: under the engine's lock. Invariants: bytes() is the sum of bytes_waiting() over the frames, and is part of `bytes_of_all`; so what
// waits is taken out by pop() or drop() before this is destroyed, unless the engine ends.
#pragma once

#include <cstring>
#include <deque>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "fabric/fabric.hpp"
#include "peer/dropped_bytes.hpp"

namespace rove {

// Bytes that may wait for one peer, per traffic. Calls beyond it are refused as overloaded (or wait, where the caller can). A peer for
// which as many bytes of replies wait is cut off, unless it has taken some within kTakenLately: they may answer calls that were sent on
// for it, and the callers at other nodes hear nothing of what waits here.
inline constexpr std::size_t kOutboxBytesMax = 64UL * 1024 * 1024;
inline constexpr auto kTakenLately = std::chrono::seconds(1);
// Bytes that may wait for all peers together: 16 peers that use all that one may.
inline constexpr std::size_t kAllOutboxBytesMax = 16 * kOutboxBytesMax;

// The memory that a waiting frame counts for: its bytes, its place in the queue, and the allocator's overhead.
constexpr std::size_t bytes_waiting(std::size_t frame_bytes) {
    return frame_bytes + sizeof(ByteBuffer) + 2 * sizeof(void*);
}

// Writes a frame's body: all but its header.
inline void fill_body(std::byte* frame, Bytes extra, Bytes payload) {
    if (!extra.empty()) std::memcpy(frame + wire::kHeaderBytes, extra.data(), extra.size());
    copy_bytes(frame + wire::kHeaderBytes + extra.size(), payload.data(), payload.size());
}

// A frame in memory of its own, header included.
inline ByteBuffer waiting_frame(const wire::FrameHeader& header, Bytes extra, Bytes payload) {
    ByteBuffer frame(wire::kHeaderBytes + extra.size() + payload.size());
    std::memcpy(frame.data(), &header, sizeof header);
    fill_body(frame.data(), extra, payload);
    return frame;
}

class Outbox {
public:
    // `bytes_of_all`: what waits for all peers of the engine, which this adds to and takes from. It outlives all calls here but the destructor.
    Outbox(fabric::Traffic traffic, std::size_t& bytes_of_all) : traffic_(traffic), bytes_of_all_(&bytes_of_all) {}

    [[nodiscard]] bool is_empty() const { return frames_.empty(); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] std::size_t count() const { return frames_.size(); }
    // Whether a frame that counts for `more` bytes (bytes_waiting) is one too many.
    [[nodiscard]] bool is_full_for(std::size_t more) const {
        if (bytes_ + more <= kOutboxBytesMax) return false;
        return traffic_ == fabric::Traffic::calls || Clock::now() - taken_at_ > kTakenLately;
    }
    // When the peer took a reply that had waited, or last had none to take.
    [[nodiscard]] TimePoint taken_at() const { return taken_at_; }

    // Without memory it throws, and nothing has changed.
    void push(const wire::FrameHeader& header, Bytes extra, Bytes payload) {
        frames_.push_back(waiting_frame(header, extra, payload));
        if (frames_.size() == 1) note_taken();
        count_in(bytes_waiting(frames_.back().size()));
    }
    // The frame that waits for longest. Precondition: there is one.
    [[nodiscard]] const ByteBuffer& front() const { return frames_.front(); }
    // It was sent.
    void pop() {
        count_out(bytes_waiting(frames_.front().size()));
        frames_.pop_front();
        note_taken();
    }
    // The peer has gone: what waited is moved into `dropped`. Needs no memory.
    void drop(DroppedBytes& dropped) {
        count_out(bytes_);
        dropped.take(frames_);
    }
    [[nodiscard]] auto begin() const { return frames_.begin(); }
    [[nodiscard]] auto end() const { return frames_.end(); }

private:
    // Only replies are asked for it, and a look at the clock takes 20 ns.
    void note_taken() {
        if (traffic_ == fabric::Traffic::prompt) taken_at_ = Clock::now();
    }
    void count_in(std::size_t bytes) {
        bytes_ += bytes;
        *bytes_of_all_ += bytes;
    }
    void count_out(std::size_t bytes) {
        bytes_ -= bytes;
        *bytes_of_all_ -= bytes;
    }

    fabric::Traffic traffic_;
    std::size_t* bytes_of_all_;
    std::deque<ByteBuffer> frames_;
    std::size_t bytes_ = 0;
    TimePoint taken_at_{};
};

}  // namespace rove
