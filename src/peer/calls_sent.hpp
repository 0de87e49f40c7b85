// CallsSent: this node's calls to a peer, and those of others that are sent on to it.
//
// Threads: under the engine's lock.
//
// Invariants: while a frame is open, which one thread fills in place, nobody else writes a call into the mailbox. A number is given to one
// payload only, over all links: a thread that has sent parts by a link that ended must not be taken for one that has begun again.
#pragma once

#include <cstdint>
#include <thread>

#include "lead/large_queue.hpp"
#include "peer/sent_on.hpp"
#include "peer/staging.hpp"

namespace rove {

// Large payloads that have been begun to one peer at once, by functions that run one on top of the other's wait: one fewer than
// the receiver takes from a peer.
inline constexpr std::size_t kLargesMax = kStagedBytesMax / wire::kMessageBytesMax - 1;

class CallsSent {
public:
    SentOn sent_on;     // for others, and not answered yet
    LargeQueue larges;  // which threads send payloads in parts: they keep their places when the link ends

    // The number of the next payload that is sent in parts.
    [[nodiscard]] std::uint64_t next_in_parts() { return ++in_parts_; }

    // A frame of calls is being filled in place: others wait in the outbox, but the thread that fills it must not wait.
    [[nodiscard]] bool has_open_frame() const { return has_open_frame_; }
    [[nodiscard]] bool has_open_frame_of_this_thread() const {
        return has_open_frame_ && opened_by_ == std::this_thread::get_id();
    }
    void open_frame() {
        ++begun_frames_;
        has_open_frame_ = true;
        opened_by_ = std::this_thread::get_id();
    }
    // `on_its_link`: the peer still has the link that the frame was begun on.
    void close_frame(bool on_its_link) {
        --begun_frames_;
        if (on_its_link) has_open_frame_ = false;
    }
    // Frames that were neither posted nor dropped yet, on any link: a CallFrame refers to its peer.
    [[nodiscard]] bool has_begun_frames() const { return begun_frames_ > 0; }

    // A call or a post is sent, or waits to be.
    void note_sent(bool wants_reply) { has_posts_ |= !wants_reply; }
    // Whether posts were sent by this link: no answer says that the peer has begun them.
    [[nodiscard]] bool has_posts() const { return has_posts_; }

    // Needs no memory.
    void forget() {
        sent_on = {};
        has_open_frame_ = false;
        has_posts_ = false;
    }

private:
    std::uint64_t in_parts_ = 0;
    std::size_t begun_frames_ = 0;
    bool has_open_frame_ = false;
    bool has_posts_ = false;
    std::thread::id opened_by_;
};

}  // namespace rove
