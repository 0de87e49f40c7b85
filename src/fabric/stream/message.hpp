// The header of each message of a stream lane: a plain value. docs/frames.md has a worked example.
//
// Threads: any. No state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/frame.hpp"

namespace rove::fabric {

enum class StreamKind : std::uint8_t { none = 0, calls = 1, prompt = 2, credit_of_calls = 3, credit_of_prompt = 4 };

struct StreamHeader {
    std::uint32_t bytes = 0;  // size of the frames that follow; 0 for a credit
    StreamKind kind = StreamKind::none;
    std::uint8_t reserved[3] = {};  // zeros
    std::uint64_t position = 0;     // the line of the first frame; for a credit: lines given back
};
static_assert(sizeof(StreamHeader) == 16, "a call of 8 bytes has 56 on the wire");
static_assert(offsetof(StreamHeader, bytes) == 0 && offsetof(StreamHeader, kind) == 4 &&
              offsetof(StreamHeader, reserved) == 5 && offsetof(StreamHeader, position) == 8);

// Consecutive frames of a ring are coalesced into messages of up to this size; a larger frame has a message of its own. The receiver
// sees none of a message's frames before all have arrived, so larger messages would only make it wait.
inline constexpr std::size_t kStreamCoalescedBytes = 64 * 1024;
inline constexpr std::size_t kStreamMessageBytesMax = wire::kFrameBytesMax;
static_assert(kStreamCoalescedBytes <= kStreamMessageBytesMax);

}  // namespace rove::fabric
