// DroppedBytes: frames that waited for peers that have gone. Their memory is freed in steps, and without the engine's lock, because there may
// be a gigabyte of small frames.
//
// Threads: under the engine's lock. What some() gives is freed without it. Invariant: none of the lists in `dropped_` is empty.
#pragma once

#include <algorithm>
#include <deque>
#include <new>
#include <utility>
#include <vector>

#include "base/bytes.hpp"

namespace rove {

// One step frees at most this many frames, and ends with the frame that reaches this many bytes.
inline constexpr std::size_t kDroppedMax = 4096;
inline constexpr std::size_t kDroppedBytesMax = 16UL * 1024 * 1024;

class DroppedBytes {
public:
    using Frames = std::deque<ByteBuffer>;

    // All of them, in a time that does not depend on their number; `frames` is empty then. Without memory they are freed at once.
    void take(Frames& frames) {
        if (frames.empty()) return;
        try {
            dropped_.emplace_back();
            dropped_.back().swap(frames);
        } catch (const std::bad_alloc&) {
            frames.clear();
        }
    }
    void take(ByteBuffer&& bytes) {
        if (bytes.empty()) return;
        try {
            Frames one;
            one.push_back(std::move(bytes));
            take(one);
        } catch (const std::bad_alloc&) {
            ByteBuffer().swap(bytes);
        }
    }
    [[nodiscard]] bool is_empty() const { return dropped_.empty(); }
    // For the caller to free. Without memory they are freed by this.
    [[nodiscard]] std::vector<ByteBuffer> some() {
        std::vector<ByteBuffer> taken;
        if (is_empty()) return taken;
        Frames& frames = dropped_.front();
        try {
            taken.reserve(std::min(kDroppedMax, frames.size()));
        } catch (const std::bad_alloc&) {  // then they are freed here
        }
        std::size_t bytes = 0;
        for (std::size_t count = 0; count < kDroppedMax && bytes < kDroppedBytesMax && !frames.empty(); ++count) {
            bytes += frames.front().capacity();
            if (taken.capacity() > taken.size()) taken.push_back(std::move(frames.front()));
            frames.pop_front();
        }
        if (frames.empty()) dropped_.pop_front();
        return taken;
    }

private:
    std::deque<Frames> dropped_;
};

}  // namespace rove
