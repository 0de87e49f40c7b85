#include "peer/staging.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rove {

Staging::Payload& Staging::begun(std::uint64_t number, std::size_t room, TimePoint now) {
    if (payloads_.empty()) {
        looked_at_ = now;
        waited_ = {};
        arrived_ = 0;
    }
    Payload& payload = payloads_[number];
    bytes_ += payload.room = room;
    return payload;
}

void Staging::begin(std::uint64_t number, LargeBytes place, TimePoint now) {
    Payload& payload = begun(number, place.room(), now);
    payload.parts = InParts(place.size());
    payload.place = std::move(place);
}

void Staging::begin_elsewhere(std::uint64_t number, std::size_t bytes, TimePoint now) {
    (void)begun(number, bytes, now);
}

bool Staging::add(const wire::Part& part, Bytes bytes) {
    const auto found = payloads_.find(part.number);
    if (found == payloads_.end()) return false;
    Payload& whole = found->second;
    if (!whole.parts.take(part.offset, part.total_bytes, bytes.size())) return false;
    std::ranges::copy(bytes, whole.place.data() + part.offset);
    arrived_ += bytes.size();
    return true;
}

std::optional<LargeBytes> Staging::take(const wire::Staged& which) {
    const auto found = payloads_.find(which.number);
    // One that a function reads itself is counted here, but has no place, so nothing can be taken.
    if (found == payloads_.end() || which.total_bytes == 0 || found->second.place.size() != which.total_bytes ||
        !found->second.parts.is_whole())
        return std::nullopt;
    LargeBytes whole = std::move(found->second.place);
    bytes_ -= found->second.room;
    payloads_.erase(found);
    return whole;
}

std::size_t Staging::forget(std::uint64_t number) {
    const auto found = payloads_.find(number);
    if (found == payloads_.end()) return 0;
    const std::size_t bytes = found->second.room;
    bytes_ -= bytes;
    payloads_.erase(found);
    return bytes;
}

std::size_t Staging::clear() {
    payloads_.clear();
    return std::exchange(bytes_, 0);
}

std::optional<std::string> Staging::too_slow(TimePoint now, Next next, bool room_wanted) {
    const Duration since = std::min<Duration>(now - std::exchange(looked_at_, now), kStagingLookMax);
    if (payloads_.empty() || next == Next::other) return std::nullopt;
    for (auto& [number, payload] : payloads_) {
        payload.age += since;
        if (payload.age > kStagedAgeMax)
            return fmt::format("began a payload of {} bytes, and its call did not come within {} s", payload.bytes(),
                               kStagedAgeMax.count());
    }
    waited_ += since;
    const Duration window = room_wanted ? kStagingStalledFor : kStagingIdleFor;
    if (waited_ < window) return std::nullopt;
    const auto seconds = static_cast<std::size_t>(std::chrono::duration_cast<std::chrono::seconds>(waited_).count());
    if (arrived_ < seconds * kStagingRateMin)
        return fmt::format("sent {} bytes of the payloads that it has begun in {} s, and must send {} a second{}{}",
                           arrived_, seconds, kStagingRateMin,
                           next == Next::waits_here ? "; it waits for room for one more" : "",
                           room_wanted ? "; others wait for room" : "");
    waited_ = {};
    arrived_ = 0;
    return std::nullopt;
}

}  // namespace rove
