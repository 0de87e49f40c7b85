#include "engine/local_frames.hpp"

namespace rove {

Status LocalFrames::add(const wire::CallContext& call, const FunctionId& function, Bytes payload) {
    wire::NamedCall frame(call, wire::kById, function.raw());
    const std::size_t bytes = bytes_waiting(wire::kHeaderBytes + frame.extra.size() + payload.size());
    if (bytes_ + bytes > kOutboxBytesMax)
        return fail(ErrorCode::overloaded, "{} bytes of calls to itself wait on {}, the most there may", bytes_,
                    name_());
    frame.header.extra_bytes = static_cast<std::uint16_t>(frame.extra.size());
    frame.header.body_bytes = static_cast<std::uint32_t>(frame.extra.size() + payload.size());
    frames_.push_back(waiting_frame(frame.header, frame.extra, payload));
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
