// What a process's memory mappings are for, with one engine: their number is bounded, too. Linux allows a process 65,530 (vm.max_map_count); where
// it has no more, memory is refused as if there were none.
#pragma once

#include "engine/peers.hpp"
#include "peer/payload_parts.hpp"
#include "peer/spare_memory.hpp"
#include "services/memory.hpp"
#include "wire/frame.hpp"

namespace rove {

inline constexpr std::size_t kProcessMappingsMax = 65'530;
// Both ends' mailboxes, and the peer's board.
inline constexpr std::size_t kMappingsOfPeer = 3;
// Payloads that arrive in parts, and results that were not taken, if all are as small as mapped ones may be.
inline constexpr std::size_t kMappingsOfPayloads = (kAllStagedBytesMax + kReassembledBytesMax) / kMappedPayloadBytesMin;
// Programs and libraries, code, the heap, and two for each stack.
inline constexpr std::size_t kMappingsOfProgram = 4'000;
static_assert(kPeersMax * kMappingsOfPeer + MemoryTable::kMappingsMax + kMappingsOfPayloads + kMappingsOfProgram <=
              kProcessMappingsMax);

}  // namespace rove
