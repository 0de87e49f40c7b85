// The mailbox ring: frames of whole cache lines, written by one peer and read by one node. docs/frames.md shows the layout.
//
// What holds:
//   * A frame never wraps: where the ring's end is too near, a filler frame takes the lines that are left.
//   * The signal word is stored last, on its own, with release; the reader loads it with acquire (each the other's partner).
//     It carries the frame's number in this ring, so what an earlier lap left is never taken for the next frame.
//   * Payload bytes of an earlier lap could look like any number, so the reader zeroes the first word of every line that it
//     has used before it gives the lines back. It does that off the way of the next frame; the sender touches no line but
//     the frame's own.
//   * Credit is the count of lines that the reader has given back, stored with release in the sender's memory once per
//     bank, and loaded there with acquire.
//
// The other side may be hostile or broken: a header is copied once and checked before it is believed; a credit may only
// grow, and not beyond what was sent.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "wire/frame.hpp"

namespace rove::fabric {

// One ring. Four of the largest frames; a full bank (below) and the largest frame with its filler fit together, so a sender
// that waits for the largest frame always gets its credit once the reader has caught up:
//   the reader keeps back less than a bank (1/8); a filler is shorter than the frame it makes room for (1/4);
//   1/8 + 1/4 + 1/4 < 1.
inline constexpr std::uint64_t kRingBytes = 1024 * 1024;
inline constexpr std::uint64_t kRingLines = kRingBytes / wire::kLineBytes;
inline constexpr std::uint64_t kBankLines = kRingLines / 8;
static_assert(wire::kFrameBytesMax * 4 <= kRingBytes);

using CreditWord = std::uint64_t;

class RingWriter {
public:
    RingWriter() = default;
    RingWriter(std::byte* memory, CreditWord* credit) : memory_(memory), credit_(credit) {}

    // Room for a frame, or null. Publishes a filler when the ring's end is too near.
    [[nodiscard]] std::byte* reserve(std::size_t frame_bytes, bool& filler_published) {
        const std::uint64_t lines = wire::lines_of(frame_bytes);
        filler_published = false;
        const std::uint64_t to_end = kRingLines - head_ % kRingLines;
        const std::uint64_t needed = lines <= to_end ? lines : lines + to_end;
        if (head_ + needed - credited_ > kRingLines && head_ + needed - load_credit() > kRingLines) return nullptr;
        if (lines > to_end) {
            store_signal({++sequence_, static_cast<std::uint16_t>(to_end), wire::Kind::filler, 0});
            head_ += to_end;
            filler_published = true;
        }
        reserved_lines_ = lines;
        return line(head_);
    }

    // The header's body fields are the caller's; sequence and lines are the ring's.
    void publish(wire::FrameHeader header) {
        header.signal.sequence = ++sequence_;
        header.signal.lines = static_cast<std::uint16_t>(reserved_lines_);
        std::memcpy(line(head_) + sizeof(wire::Signal),
                    reinterpret_cast<const std::byte*>(&header) + sizeof(wire::Signal),
                    wire::kHeaderBytes - sizeof(wire::Signal));
        store_signal(header.signal);
        head_ += reserved_lines_;
    }

    [[nodiscard]] bool connected() const { return memory_ != nullptr; }
    [[nodiscard]] std::uint64_t head() const { return head_; }
    [[nodiscard]] std::uint32_t sequence() const { return sequence_; }
    [[nodiscard]] std::uint64_t credited() { return load_credit(); }
    [[nodiscard]] bool credit_is_wrong() const { return credit_wrong_; }
    [[nodiscard]] const std::byte* memory() const { return memory_; }

private:
    [[nodiscard]] std::byte* line(std::uint64_t position) const {
        return memory_ + position % kRingLines * wire::kLineBytes;
    }

    void store_signal(wire::Signal signal) {
        std::uint64_t word = 0;
        std::memcpy(&word, &signal, sizeof word);
        std::atomic_ref(*reinterpret_cast<std::uint64_t*>(line(head_))).store(word, std::memory_order_release);
    }

    std::uint64_t load_credit() {
        const std::uint64_t credit = std::atomic_ref(*credit_).load(std::memory_order_acquire);
        if (credit < credited_ || credit > head_)
            credit_wrong_ = true;
        else
            credited_ = credit;
        return credited_;
    }

    std::byte* memory_ = nullptr;
    CreditWord* credit_ = nullptr;
    std::uint64_t head_ = 0;      // lines written, ever
    std::uint64_t credited_ = 0;  // lines given back, ever
    std::uint64_t reserved_lines_ = 0;
    std::uint32_t sequence_ = 0;
    bool credit_wrong_ = false;
};

class RingReader {
public:
    RingReader() = default;
    explicit RingReader(std::byte* memory) : memory_(memory) {}

    enum class Arrival : std::uint8_t { none, frame, malformed };

    // The frame at the tail, if it is there whole. Asked again before release(), it gives the same frame.
    [[nodiscard]] Arrival next(wire::Frame& frame) {
        for (;;) {
            wire::Signal signal = load_signal();
            if (signal.kind == wire::Kind::none || signal.sequence != sequence_ + 1) {
                // A word that is neither empty nor the next number was not written by this protocol.
                return signal.kind == wire::Kind::none && signal.sequence == 0 ? Arrival::none : Arrival::malformed;
            }
            const std::uint64_t to_end = kRingLines - tail_ % kRingLines;
            if (signal.lines == 0 || signal.lines > to_end) return Arrival::malformed;
            lines_ = signal.lines;
            if (signal.kind != wire::Kind::filler) return read(signal, frame);
            release();
        }
    }

    void release() {
        for (std::uint64_t i = 0; i < lines_; ++i) {
            auto* word = reinterpret_cast<std::uint64_t*>(line(tail_ + i));
            std::atomic_ref(*word).store(0, std::memory_order_relaxed);  // ordered by the credit's release
        }
        tail_ += lines_;
        ++sequence_;
        lines_ = 0;
    }

    // Whether a bank has been emptied since the last credit; then the caller publishes tail() as the credit.
    [[nodiscard]] bool credit_due() {
        if (tail_ - credit_given_ < kBankLines) return false;
        credit_given_ = tail_;
        return true;
    }
    [[nodiscard]] bool pending() const { return memory_ != nullptr && load_signal().kind != wire::Kind::none; }
    [[nodiscard]] std::uint64_t tail() const { return tail_; }
    [[nodiscard]] std::uint32_t sequence() const { return sequence_; }
    [[nodiscard]] std::byte* memory() const { return memory_; }

private:
    [[nodiscard]] std::byte* line(std::uint64_t position) const {
        return memory_ + position % kRingLines * wire::kLineBytes;
    }

    [[nodiscard]] wire::Signal load_signal() const {
        const std::uint64_t word =
            std::atomic_ref(*reinterpret_cast<std::uint64_t*>(line(tail_))).load(std::memory_order_acquire);
        wire::Signal signal;
        std::memcpy(&signal, &word, sizeof signal);
        return signal;
    }

    [[nodiscard]] Arrival read(wire::Signal signal, wire::Frame& frame) const {
        std::byte* at = line(tail_);
        std::memcpy(&frame.header, at, sizeof frame.header);
        frame.header.signal = signal;
        if (wire::kHeaderBytes + std::uint64_t{frame.header.body_bytes} > signal.lines * wire::kLineBytes ||
            !wire::check(frame.header))
            return Arrival::malformed;
        const Bytes body(at + wire::kHeaderBytes, frame.header.body_bytes);
        frame.extra = body.first(frame.header.extra_bytes);
        frame.payload = body.subspan(frame.header.extra_bytes);
        return Arrival::frame;
    }

    std::byte* memory_ = nullptr;
    std::uint64_t tail_ = 0;  // lines read, ever
    std::uint64_t credit_given_ = 0;
    std::uint64_t lines_ = 0;  // of the frame at the tail
    std::uint32_t sequence_ = 0;
};

// What a node owns per link and lets its peer write: two rings, and the credits for the rings that the node itself fills.
// `asleep` is the owner's to write and the peer's to read.
struct alignas(4096) Region {
    alignas(64) CreditWord credits[2];
    alignas(64) std::uint32_t asleep;
    std::uint64_t
        owner;  // the owner's link token: a sender that has mapped this knows by it that it is the right place
    alignas(64) std::byte rings[2][kRingBytes];
};

}  // namespace rove::fabric
