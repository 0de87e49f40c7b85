// The mailbox ring: frames of whole cache lines, written by one peer and read by one node. docs/frames.md shows the layout.
//
// Invariants:
//   * A frame never wraps: if it does not fit before the ring's end, a filler frame takes the remaining lines.
//   * Memory follows use (RingPages). The writer uses few lines at first: after these it publishes a filler and begins again at the ring's
//     beginning. If the reader has not read enough of them by then, the writer goes on and uses twice as many. For the reader these are
//     fillers like all others.
//   * The signal word is stored last, in a separate store with release; the reader loads it with acquire (the two are partners).
//     It is the ring's key, a random number that only the two ends know, plus the frame's number in this ring. So data of an
//     earlier lap is never taken for the next frame: an old signal has another number, and payload would have to equal one
//     word of 2^64. Neither side clears anything; the writer only fills up the last word of a body, so that no part of an old
//     signal remains.
//   * Credit is the count of lines that the reader has given back, stored with release in the sender's memory once per bank, or earlier if
//     the reader has caught up, and loaded there with acquire. A frame that is still in use while later ones are done (a function that
//     runs long) is *held*: its lines and those after it are given back when it ends.
//
// The other side may be hostile or broken: a header is copied once and checked before it is used; a credit may only
// grow, and not beyond what was sent.
//
// Threads: a RingWriter and a RingReader are used by one at a time each; the two ends of a ring by different threads or processes. Without a
// lock, any thread may load the word at next_word().
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "arch/arch.hpp"
#include "fabric/ring_pages.hpp"
#include "wire/frame.hpp"

namespace rove::fabric {

// A ring holds four of the largest frames. A full bank and the largest frame with its filler fit into it together, so a sender that
// waits for the largest frame always gets its credit once the reader has caught up:
//   the reader keeps back less than a bank (1/8); a filler is shorter than the frame for which it makes room (1/4);
//   1/8 + 1/4 + 1/4 < 1.
inline constexpr std::uint64_t kBankLines = kRingLines / 8;
static_assert(wire::kFrameBytesMax * 4 <= kRingBytes);
static_assert(wire::kFillerBytesMax == kRingBytes - wire::kLineBytes);

// The longest frame for which a writer goes back before the ring's end. With longer ones half as many posts of 64 KiB were sent (two cores of a
// Zen 5, `rove bench bandwidth`).
inline constexpr std::uint64_t kGoesBackLinesMax = 64;
// A reader that has caught up gives credit for this many lines, so that a writer that uses few lines finds them free when it goes back.
inline constexpr std::uint64_t kCaughtUpLines = 64;

// The writer's prefetch distance from the next frame, in lines: the reader has these lines in its cache, and fetching one back takes as
// long as a few frames do. The reader may be polling nearer lines, so own_next() prefetches the next frame's just before it is written.
inline constexpr std::uint64_t kAheadLines = 8;
// The writer prefetches as many lines as the last frame had, if these are at most kAskedLinesMax, and one line after a longer frame:
// prefetching all lines of a long frame costs more than it saves (without it, 1.5 times as many posts of 4 KiB are sent).
inline constexpr std::uint64_t kAskedLinesMax = 32;

// Each time it has used them up, a writer of posts stores into so many of the next lines, which makes them its own. A prefetch for writing does
// not do that where the reader's cache has the line as well (a Zen 5 drops most), and the stores of single frames do it for one line after the
// other: a core holds no more than two or three frames' stores that wait for their lines. These few stores wait together. On two distant
// cores 18 to 25 million posts are run in a second with them, and 6.5 million without; on near ones as many or a tenth more (`rove bench rate`).
// Only for posts: an answer to a call is not sent any sooner by it, and the reader polls the next line.
inline constexpr std::uint64_t kOwnedLines = 8;
// Frames of more lines have wide stores of their own.
inline constexpr std::uint64_t kOwnedFrameLinesMax = 4;

// The reader prefetches this many of a frame's lines when the first one has arrived: they are in the writer's cache, and are transferred
// while the frame's header is checked.
inline constexpr std::uint64_t kReadAheadLines = 16;

using CreditWord = std::uint64_t;

// Positions in one round of a ring, the last one included.
struct KeptLines {
    std::uint64_t first, last;
};

class RingWriter {
public:
    RingWriter() = default;
    RingWriter(std::byte* memory, CreditWord* credit, std::uint64_t key)
        : memory_(memory), credit_(credit), key_(key) {}

    // Room for a frame if that needs neither a filler nor a new load of the credit, otherwise null.
    [[nodiscard]] std::byte* reserve(std::size_t frame_bytes) const {
        const std::uint64_t lines = wire::lines_of(frame_bytes);
        if (head_ % kRingLines + lines > pages_.wall() || head_ + lines - credited_ > kRingLines) return nullptr;
        return line(head_);
    }

    // Prefetches, for writing, the line in which the next frame begins.
    void own_next() const { arch::own_soon(line(head_)); }

    // Whether reserve_rarely() would find room. Loads the credit if it has to.
    [[nodiscard]] bool has_room(std::size_t frame_bytes) {
        const std::uint64_t lines = wire::lines_of(frame_bytes);
        if (pages_.are_lent()) return fits_lent(lines) && has_room_for(lines);
        return has_room_for(lines <= to_end() ? lines : lines + to_end());
    }

    // Room for a frame, or null. Publishes a filler if the frame does not fit before the ring's end, or if the writer goes back before that.
    [[nodiscard]] std::byte* reserve_rarely(std::size_t frame_bytes) {
        const std::uint64_t lines = wire::lines_of(frame_bytes);
        if (pages_.are_lent()) {
            if (!fits_lent(lines) || !has_room_for(lines)) return nullptr;
        } else if (lines > to_end()) {
            if (!has_room_for(lines + to_end())) return nullptr;
            fill_to_end();
        } else {
            if (!has_room_for(lines)) return nullptr;
            const std::uint64_t at = head_ % kRingLines;
            if (at > 0 && at + lines > pages_.wall()) {
                if (lines <= kGoesBackLinesMax && is_followed(pages_.wall() / 2) && has_room_for(lines + to_end()))
                    fill_to_end();
                else
                    pages_.grow(at + lines);
            }
        }
        pages_.touch(head_ % kRingLines + lines - 1);
        return line(head_);
    }

    // ---- memory: the pages that this writer has touched and does not need

    // Whether the reader has given back all lines but a few, so that nothing of the ring is in use but kept(). Precondition: no frame is reserved.
    [[nodiscard]] bool is_drained() {
        const std::uint64_t credit = load_credit();
        return head_ - credit <= kCaughtUpLines && credit % kRingLines <= head_ % kRingLines;
    }
    // The lines that are not given back, and that at which the reader looks next.
    [[nodiscard]] KeptLines kept() const { return {credited_, head_}; }
    [[nodiscard]] const RingPages& pages() const { return pages_; }
    // All pages but that of the next line are being given back, which another thread does. Precondition: is_drained().
    void lend_pages() { pages_.lend(head_ % kRingLines); }
    void keep_pages() { pages_.keep(); }
    void forget_pages() { pages_.forget(); }

    // Publishes the frame that was reserved last. The caller sets all of the header but the signal; body_bytes as reserved.
    [[gnu::always_inline]] void publish(wire::FrameHeader header) {
        std::byte* at = line(head_);
        header.signal = key_ + ++sequence_;
        std::memcpy(at + sizeof header.signal, reinterpret_cast<const std::byte*>(&header) + sizeof header.signal,
                    wire::kHeaderBytes - sizeof header.signal);
        if (header.kind != wire::Kind::filler) fill_last_word(at + wire::kHeaderBytes, header.body_bytes);
        std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at)).store(header.signal, std::memory_order_release);
        const std::uint64_t lines = wire::lines_of(header);
        head_ += lines;
        if ((header.flags & wire::kNoReply) != 0 && lines <= kOwnedFrameLinesMax) {
            if (owned_ <= head_) own_lines();
            return;
        }
        std::uint64_t ahead = head_ % kRingLines + kAheadLines;
        std::byte* const memory = memory_;  // own_soon() makes the compiler reload members for each line
        const std::uint64_t wall = pages_.wall();
        for (std::uint64_t left = lines <= kAskedLinesMax ? lines : 1; left > 0; --left, ++ahead)
            arch::own_soon(memory + (ahead < wall ? ahead : (ahead - wall) % kRingLines) * wire::kLineBytes);
    }

    [[nodiscard]] bool connected() const { return memory_ != nullptr; }
    [[nodiscard]] std::uint64_t head() const { return head_; }
    [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
    [[nodiscard]] std::uint64_t credited() { return load_credit(); }
    [[nodiscard]] bool credit_is_wrong() const { return credit_wrong_; }
    [[nodiscard]] const std::byte* memory() const { return memory_; }

private:
    [[nodiscard]] std::byte* line(std::uint64_t position) const {
        return memory_ + position % kRingLines * wire::kLineBytes;
    }

    [[nodiscard]] std::uint64_t to_end() const { return kRingLines - head_ % kRingLines; }
    [[nodiscard]] bool has_room_for(std::uint64_t lines) {
        return head_ + lines - credited_ <= kRingLines || head_ + lines - load_credit() <= kRingLines;
    }
    [[nodiscard]] bool fits_lent(std::uint64_t lines) const { return head_ % kRingLines + lines <= pages_.wall(); }
    // Whether all lines but these have been given back.
    [[nodiscard]] bool is_followed(std::uint64_t lines) {
        return head_ - credited_ <= lines || head_ - load_credit() <= lines;
    }
    // The next lines, where all of them are free and before the wall. The last word of a line that nobody reads may be anything.
    [[gnu::noinline]] void own_lines() {
        const std::uint64_t at = head_ % kRingLines;
        if (at + kOwnedLines > pages_.wall() || head_ + kOwnedLines - credited_ > kRingLines) return;
        owned_ = head_ + kOwnedLines;
        std::byte* const last_word = memory_ + wire::kLineBytes - sizeof(std::uint64_t);
        for (std::uint64_t line = at; line < at + kOwnedLines; ++line)
            std::atomic_ref(*reinterpret_cast<std::uint64_t*>(last_word + line * wire::kLineBytes))
                .store(0, std::memory_order_relaxed);
    }
    void fill_to_end() {
        pages_.touch(head_ % kRingLines);
        publish({.body_bytes = static_cast<std::uint32_t>(to_end() * wire::kLineBytes - wire::kHeaderBytes),
                 .kind = wire::Kind::filler});
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
    std::uint64_t key_ = 0;
    std::uint64_t head_ = 0;   // lines written, ever
    std::uint64_t owned_ = 0;  // the lines before this one have been made the writer's own, if any has
    RingPages pages_;
    std::uint64_t credited_ = 0;  // lines given back, ever
    std::uint64_t sequence_ = 0;
    bool credit_wrong_ = false;
};

class RingReader {
public:
    RingReader() = default;
    RingReader(std::byte* memory, std::uint64_t key) : memory_(memory), awaited_(key + 1) { held_.reserve(kHeldMin); }

    enum class Arrival : std::uint8_t { none, frame, malformed };

    // The frame at the tail, if it has arrived completely. Called again before release(), it returns the same frame.
    [[nodiscard, gnu::always_inline]] Arrival next(wire::Frame& frame) {
        while (pending()) {
            const std::byte* at = line(tail_);
            std::memcpy(&frame.header, at, sizeof frame.header);  // once: the peer can change it at any time
            if (!wire::is_well_formed(frame.header)) return Arrival::malformed;
            lines_ = wire::lines_of(frame.header);
            const std::uint64_t to_end = kRingLines - tail_ % kRingLines;
            if (frame.header.kind != wire::Kind::filler) {
                if (lines_ > 1) {  // one line always fits
                    if (lines_ > to_end) return Arrival::malformed;
                    for (std::uint64_t i = 1; i < std::min(lines_, kReadAheadLines); ++i)
                        __builtin_prefetch(at + i * wire::kLineBytes);
                }
                const Bytes body(at + wire::kHeaderBytes, frame.header.body_bytes);
                frame.extra = body.first(frame.header.extra_bytes);
                frame.payload = body.subspan(frame.header.extra_bytes);
                return Arrival::frame;
            }
            if (lines_ != to_end) return Arrival::malformed;  // so at most one filler: none is as long as the ring
            release();
        }
        return Arrival::none;
    }

    // The frame at the tail, if it is like the one before it in all of its header but the signal: then it has passed the same checks. `frame`: that
    // one, as next() has given it; only its payload changes. False: ask next().
    [[nodiscard, gnu::always_inline]] bool next_alike(wire::Frame& frame) {
        if (!pending()) return false;
        const std::byte* at = line(tail_);
        wire::FrameHeader header;
        std::memcpy(&header, at, sizeof header);  // once: the peer can change it at any time
        constexpr std::size_t kSignal = sizeof header.signal;
        const auto but_signal = [](const wire::FrameHeader& of) {
            return reinterpret_cast<const std::byte*>(&of) + kSignal;
        };
        if (std::memcmp(but_signal(header), but_signal(frame.header), sizeof header - kSignal) != 0) return false;
        const std::uint64_t lines = wire::lines_of(frame.header);
        if (lines > kRingLines - tail_ % kRingLines) return false;
        lines_ = lines;
        for (std::uint64_t i = 1; i < std::min(lines, kReadAheadLines); ++i)
            __builtin_prefetch(at + i * wire::kLineBytes);
        frame.payload = Bytes(at + wire::kHeaderBytes + frame.extra.size(), frame.payload.size());
        return true;
    }

    // Advances to the next frame.
    void release() {
        tail_ += lines_;
        ++awaited_;
        lines_ = 0;
    }

    // Advances to the next frame, but keeps this one's lines until let_go() is called with the returned position.
    // Without memory for a further position it keeps those of the last frame that is held, too, and the position is that frame's.
    [[nodiscard]] std::uint64_t hold() noexcept {
        try {
            held_.push_back({tail_, 1});
        } catch (const std::bad_alloc&) {
            ++held_.back().frames;  // there is one: room for kHeldMin has been reserved
        }
        release();
        return held_.back().position;
    }
    void let_go(std::uint64_t position) noexcept {
        const auto held = std::ranges::find(held_, position, &Held::position);
        if (held != held_.end() && --held->frames == 0) held_.erase(held);
    }

    // True, once, when a bank has been emptied since the last credit, or some lines and no frame waits: the caller then publishes given_back().
    [[nodiscard]] bool take_due_credit() {
        const std::uint64_t lines = given_back() - credit_given_;
        if (lines < kCaughtUpLines || (lines < kBankLines && pending())) return false;
        return take_credit();
    }
    // The same, however few lines these are.
    [[nodiscard]] bool take_credit() {
        const std::uint64_t before = std::exchange(credit_given_, given_back());
        return credit_given_ != before;
    }
    // Whether no frame has come that is not given back. `come`: the lines that have come, ever.
    [[nodiscard]] bool is_empty(std::uint64_t come) const { return come == given_back(); }
    // Lines that the sender may use again, ever.
    [[nodiscard]] std::uint64_t given_back() const { return held_.empty() ? tail_ : held_.front().position; }
    // Whether frames in use leave the sender no room for the largest frame.
    [[nodiscard]] bool keeps_back() const {
        return kRingLines - (tail_ - given_back()) < wire::lines_of(wire::kFrameBytesMax);
    }
    [[nodiscard]] bool pending() const {
        return std::atomic_ref(*next_word()).load(std::memory_order_acquire) == awaited_;
    }
    // The address of the next frame's signal, and its value.
    [[nodiscard]] std::uint64_t* next_word() const { return reinterpret_cast<std::uint64_t*>(line(tail_)); }
    [[nodiscard]] std::uint64_t awaited() const { return awaited_; }
    [[nodiscard]] std::uint64_t tail() const { return tail_; }
    [[nodiscard]] bool open() const { return memory_ != nullptr; }

private:
    static constexpr std::size_t kHeldMin = 8;  // frames that are held by positions of their own, even without memory
    struct Held {
        std::uint64_t position;
        unsigned frames;  // for which let_go() is still to be called
    };
    [[nodiscard]] std::byte* line(std::uint64_t position) const {
        return memory_ + position % kRingLines * wire::kLineBytes;
    }

    std::byte* memory_ = nullptr;
    std::uint64_t awaited_ = 0;  // the next frame's signal
    std::uint64_t tail_ = 0;     // lines read, ever
    std::uint64_t credit_given_ = 0;
    std::uint64_t lines_ = 0;  // lines of the frame at the tail
    std::vector<Held> held_;   // frames in use, in order
};

// What the owner of a mailbox wants of a peer that has sent something: nothing while it looks, the bell while it sleeps, and the bit on its board where it does not
// look at this mailbox (Fabric::cool). The peer takes the word back when it does so.
enum class Wanted : std::uint32_t { nothing = 0, bell = 1, bit = 2 };

// The memory that a node owns per link and that its peer writes: two rings, and the credits for the rings that the node itself fills.
struct alignas(4096) Region {
    alignas(64) CreditWord credits[2];
    alignas(64) Wanted wanted;
    // The owner's link token, by which a sender that has mapped this verifies that it is the right region.
    std::uint64_t owner;
    alignas(64) std::byte rings[2][kRingBytes];
};
static_assert(offsetof(Region, rings) == kLinesBeforeRing * wire::kLineBytes, "kLinesAtFirst ends with a page");

}  // namespace rove::fabric
