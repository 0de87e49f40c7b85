#include "wire/frame.hpp"

namespace rove::wire {

Status check(const FrameHeader& header) {
    const auto kind = static_cast<std::uint8_t>(header.signal.kind);
    if (kind == 0 || kind > kKindMax) return fail(ErrorCode::invalid, "a frame of unknown kind {}", kind);
    if (header.body_bytes > kFrameBytesMax - kHeaderBytes)
        return fail(ErrorCode::invalid, "a frame with a body of {} bytes", header.body_bytes);
    if (header.extra_bytes % 16 != 0 || header.extra_bytes > header.body_bytes)
        return fail(ErrorCode::invalid, "a frame with an extension of {} bytes in a body of {}", header.extra_bytes,
                    header.body_bytes);
    return {};
}

}  // namespace rove::wire
