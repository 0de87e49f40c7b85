// The chaos fabric: loopback whose frames arrive as badly as any transport may bring them, by a seed.
//
// A sender fills a mirror of the peer's ring. Each turn of progress() carries a few pieces of what is published to the
// peer's ring: pieces of one frame in any order, pieces of several frames between one another, a later frame perhaps
// whole before an earlier one has begun; a frame's signal word only when the rest of that frame is there. Credits come
// late. After `frames_max` frames the link is cut in the middle of whatever is on its way.
//
// The same seed gives the same pieces in the same order, as long as one thread drives both sides.
#pragma once

#include <cstdint>
#include <memory>

#include "fabric/loopback/loopback.hpp"

namespace rove::fabric {

struct ChaosOptions {
    std::uint64_t seed = 1;
    std::size_t piece_bytes_max = 4096;     // of what is carried at once
    unsigned pieces_per_turn_max = 64;      // per link and turn of progress()
    unsigned credit_turns_max = 8;          // how late a credit may come
    std::uint64_t frames_max = UINT64_MAX;  // cut after so many frames (fillers counted) of one link's sender
};

[[nodiscard]] Result<std::unique_ptr<Fabric>> open_chaos_fabric(std::shared_ptr<Exchange> exchange,
                                                                const ChaosOptions& options);

}  // namespace rove::fabric
