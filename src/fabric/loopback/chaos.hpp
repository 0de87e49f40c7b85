// The chaos fabric: loopback whose frames arrive in the worst ways that a transport may deliver them, chosen by a seed.
//
// A sender fills a mirror of the peer's ring. Each turn of progress() copies a few pieces of the published frames to the
// peer's ring: pieces of one frame in any order, pieces of several frames interleaved, a later frame perhaps
// completely before an earlier one has begun; a frame's signal word only after the rest of that frame. Credits arrive
// late. After `frames_max` frames the link is cut, and what is in transit is lost.
//
// The same seed gives the same pieces in the same order, as long as one thread drives both sides.
//
// Threads: as loopback.hpp.
#pragma once

#include <cstdint>
#include <memory>

#include "fabric/loopback/loopback.hpp"

namespace rove::fabric {

struct ChaosOptions {
    std::uint64_t seed = 1;
    std::size_t piece_bytes_max = 4096;     // size of one piece
    unsigned pieces_per_turn_max = 64;      // per link and turn of progress()
    unsigned credit_turns_max = 8;          // delay of a credit
    std::uint64_t frames_max = UINT64_MAX;  // cut after this many frames (including fillers) of one link's sender
};

[[nodiscard]] Result<std::unique_ptr<Fabric>> open_chaos_fabric(std::shared_ptr<Exchange> exchange,
                                                                const ChaosOptions& options);

}  // namespace rove::fabric
