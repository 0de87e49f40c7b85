// The reader of a mailbox ring over arbitrary bytes: what it gives out lies within the ring, and it comes to an end. The first
// half of the input lies at the ring's begin, the second at its end. The ring's key is 0, so that an input can hit signals.
#include "fabric/ring.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace {

using namespace rove;
using namespace rove::fabric;

// Of exactly a ring's size, so that the address sanitizer sees every byte beyond it.
struct Memory {
    Memory() : bytes(static_cast<std::byte*>(std::aligned_alloc(wire::kLineBytes, kRingBytes)), &std::free) {
        std::memset(bytes.get(), 0, kRingBytes);
    }
    std::unique_ptr<std::byte, decltype(&std::free)> bytes;
};

void require(bool holds) {
    if (!holds) std::abort();
}

std::uint64_t sum(Bytes bytes) {
    std::uint64_t total = 0;
    for (const std::byte byte : bytes) total += std::to_integer<std::uint64_t>(byte);
    return total;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Memory memory;
    std::byte* ring = memory.bytes.get();
    const std::size_t half = std::min<std::size_t>(size / 2, kRingBytes / 2);
    if (half > 0) {
        std::memcpy(ring, data, half);
        std::memcpy(ring + kRingBytes - half, data + half, half);
    }
    RingReader reader(ring, 0);
    wire::Frame frame;
    for (std::uint64_t frames = 0; reader.next(frame) == RingReader::Arrival::frame; ++frames) {
        require(frame.extra.data() >= ring && frame.payload.data() + frame.payload.size() <= ring + kRingBytes);
        require(reinterpret_cast<std::uintptr_t>(frame.payload.data()) % 16 == 0);
        volatile std::uint64_t read = sum(frame.extra) + sum(frame.payload);
        (void)read;
        const std::uint64_t before = reader.tail();
        reader.release();
        require(reader.tail() > before);
        // Each frame has a number of its own, so none is read twice however often the ring is gone round.
        require(frames <= kRingLines);
    }
    std::memset(ring, 0, half);
    std::memset(ring + kRingBytes - half, 0, half);
    return 0;
}
