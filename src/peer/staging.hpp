// The payloads that one peer is sending in parts, and whether it keeps sending them.
//
// A peer that begins a payload takes room that others may be waiting for, so it must send at a minimum rate, and complete the payload
// within a limit. Only time in which this node waits for the peer counts: parts that are in the mailbox already, after a call that waits
// for its code or for a thread, are not late by the peer's fault. But a peer that begins one payload before another is whole holds room
// while it waits for more; an honest peer sends one after the other, so that time counts as well.
//
// Threads: under the engine's lock. Invariants: bytes() is the sum of the payloads' room, at most kStagedBytesMax if callers ask may_begin(). A
// payload that was put together here leaves by take() once, when it is whole, or by forget() or clear().
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.hpp"
#include "peer/in_parts.hpp"
#include "peer/spare_memory.hpp"
#include "wire/frame.hpp"

namespace rove {

// Payloads that are arriving in parts from one peer: a few threads of it may be sending one at once.
inline constexpr std::size_t kStagedBytesMax = 8 * wire::kMessageBytesMax;
inline constexpr std::size_t kStagedMax = 256;  // of them; a thread sends one at a time
// From all peers together: 32 of the largest, so four peers may use all that one may. What does not fit waits in its mailbox.
inline constexpr std::size_t kAllStagedBytesMax = 4 * kStagedBytesMax;
// The minimum rate at which a peer must send a payload that it has begun: 128 kbit/s, the rate of a slow line.
inline constexpr std::size_t kStagingRateMin = 16UL * 1024;  // bytes a second
// The time over which that is measured while somebody waits for room …
inline constexpr auto kStagingStalledFor = std::chrono::seconds(10);
// … and while nobody does.
inline constexpr auto kStagingIdleFor = std::chrono::seconds(60);
// How old a payload becomes before its call has arrived: what the largest takes at the least rate (2,048 s), and the call.
inline constexpr auto kStagedAgeMax = std::chrono::seconds(wire::kMessageBytesMax / kStagingRateMin) + kStagingIdleFor;
// The most that counts between two looks: when nobody looked for longer, this node was the slow one.
inline constexpr auto kStagingLookMax = std::chrono::milliseconds(200);

class Staging {
public:
    [[nodiscard]] bool is_empty() const { return payloads_.empty(); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] bool contains(std::uint64_t number) const { return payloads_.contains(number); }
    // Whether a payload that takes so much room is within what one peer may have here.
    [[nodiscard]] bool may_begin(std::size_t room) const {
        return room <= kStagedBytesMax - bytes_ && payloads_.size() < kStagedMax;
    }
    // Precondition: it may, and no payload has that number.
    void begin(std::uint64_t number, LargeBytes place, TimePoint now);
    // Begins a payload that a run reads out of the mailbox, so that it is not reassembled here (Gathering). It counts like any other.
    void begin_elsewhere(std::uint64_t number, std::size_t bytes, TimePoint now);
    void came_elsewhere(std::size_t bytes) { arrived_ += bytes; }
    // The next part of a payload. False: it is not the next one of any, and nothing has changed.
    [[nodiscard]] bool add(const wire::Part& part, Bytes bytes);
    // A payload that has arrived as a whole; nothing: there is none, or it is not whole.
    [[nodiscard]] std::optional<LargeBytes> take(const wire::Staged& which);
    // Gives how many bytes of room that gave back.
    std::size_t forget(std::uint64_t number);
    std::size_t clear();

    // The next frame in the peer's mailbox.
    enum class Next : std::uint8_t {
        nothing,  // no frame, and room for one: this node waits for the peer
        other,  // the peer waits for this node: a frame of another kind is next, or the mailbox had no room for the next one
        waits_here,  // the first part of one more payload, for which this node has no room
    };
    // To be called at intervals. If the peer is too slow: what it did, for the message. `room_wanted`: a peer waits for room.
    [[nodiscard]] std::optional<std::string> too_slow(TimePoint now, Next next, bool room_wanted);

private:
    using Duration = TimePoint::duration;
    struct Payload {
        LargeBytes place;      // empty: it is read elsewhere
        std::size_t room = 0;  // that it takes
        InParts parts{0};      // of one that is put together here
        Duration age{};
        [[nodiscard]] std::size_t bytes() const { return place.size() > 0 ? place.size() : room; }
    };
    [[nodiscard]] Payload& begun(std::uint64_t number, std::size_t room, TimePoint now);
    std::unordered_map<std::uint64_t, Payload> payloads_;
    std::size_t bytes_ = 0;  // of room, for all that was announced
    TimePoint looked_at_{};
    Duration waited_{};        // for the peer, since its rate was looked at …
    std::size_t arrived_ = 0;  // … and what it has sent since then
};

}  // namespace rove
