#include "engine/local_frames.hpp"

namespace rove {

Status LocalFrames::add(wire::FrameHeader header, const FunctionId& function, Bytes payload) {
    const std::size_t bytes = bytes_waiting(wire::kHeaderBytes + sizeof(FunctionId) + payload.size());
    if (bytes_ + bytes > kOutboxBytesMax)
        return fail(ErrorCode::overloaded, "{} bytes of calls to itself wait on {}, the most there may", bytes_,
                    name_());
    header.kind = wire::Kind::call;
    header.flags |= wire::kById;
    header.extra_bytes = sizeof(FunctionId);
    header.body_bytes = static_cast<std::uint32_t>(sizeof(FunctionId) + payload.size());
    frames_.push_back(waiting_frame(header, function.raw(), payload));
    bytes_ += bytes;
    lead_.wake();
    return {};
}

std::list<ByteBuffer> LocalFrames::take_first() {
    std::list<ByteBuffer> first;
    first.splice(first.begin(), frames_, frames_.begin());
    bytes_ -= bytes_waiting(first.front().size());
    return first;
}

void LocalFrames::put_back(std::list<ByteBuffer> first) noexcept {
    bytes_ += bytes_waiting(first.front().size());
    frames_.splice(frames_.begin(), first);
}

}  // namespace rove
