// The payloads that one peer is sending in parts, and whether it goes on with them.
//
// A peer that begins a payload takes room that others may be waiting for, so it must send at a least rate, and must not take longer
// than a limit altogether. Only time in which this node waits for the peer counts: what lies in the mailbox already, behind a call
// that waits for its code or for a thread, is late by no fault of the peer's.
//
// Threads: under the node's lock. Nothing here takes longer because a peer announces more.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.hpp"
#include "node/spare_memory.hpp"
#include "wire/frame.hpp"

namespace rove {

// Payloads that are arriving in parts from one peer: a few threads of it may be sending one at once.
inline constexpr std::size_t kStagedBytesMax = 8 * wire::kMessageBytesMax;
inline constexpr std::size_t kStagedMax = 256;  // of them; a thread sends one at a time
// From all peers together: 32 of the largest, so four peers may use all that one may. What does not fit waits in its mailbox.
inline constexpr std::size_t kAllStagedBytesMax = 4 * kStagedBytesMax;
// What a peer that has begun a payload sends of such at least: 128 kbit/s, the rate of a slow line.
inline constexpr std::size_t kStagingRateMin = 16UL * 1024;  // bytes a second
// On the average over so long while others wait for room, and over so long while nobody does.
inline constexpr auto kStagingStalledFor = std::chrono::seconds(10);
inline constexpr auto kStagingIdleFor = std::chrono::seconds(60);
// And how old a payload becomes before its call has come: enough for the largest at 27 KiB/s.
inline constexpr auto kStagedAgeMax = std::chrono::seconds(1200);
// The most that counts between two looks: when nobody looked for longer, this node was the slow one.
inline constexpr auto kStagingLookMax = std::chrono::milliseconds(200);

class Staging {
public:
    [[nodiscard]] bool is_empty() const { return payloads_.empty(); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] bool contains(std::uint64_t number) const { return payloads_.contains(number); }
    // Whether a payload of that size is within what one peer may have here.
    [[nodiscard]] bool may_begin(std::size_t bytes) const {
        return bytes <= kStagedBytesMax - bytes_ && payloads_.size() < kStagedMax;
    }
    // Precondition: it may, and no payload has that number.
    void begin(std::uint64_t number, LargeBytes place, TimePoint now);
    // The next part of a payload. False: it is not the next one of any, and nothing has changed.
    [[nodiscard]] bool add(const wire::Part& part, Bytes bytes);
    // A payload of which all has come; nothing: there is none, or it is not whole.
    [[nodiscard]] std::optional<LargeBytes> take(const wire::Staged& which);
    // Gives how many bytes of room that gave back.
    std::size_t forget(std::uint64_t number);
    std::size_t clear();

    // To be asked again and again. `waited_for`: nothing of the peer is there that was not taken. Gives what the peer did, where it
    // is too slow.
    [[nodiscard]] std::optional<std::string> too_slow(TimePoint now, bool waited_for, bool others_wait);

private:
    using Duration = TimePoint::duration;
    struct Payload {
        LargeBytes place;
        std::size_t arrived = 0;
        Duration age{};
    };
    std::unordered_map<std::uint64_t, Payload> payloads_;
    std::size_t bytes_ = 0;  // as announced
    TimePoint looked_at_{};
    Duration waited_{};        // for the peer, since its rate was looked at …
    std::size_t arrived_ = 0;  // … and what it has sent since then
};

}  // namespace rove
