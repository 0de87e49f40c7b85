// RingPages: how many lines from a ring's beginning its writer uses, and which of them may have pages. So memory follows use: a ring whose reader
// keeps up takes 32 KiB, and its other pages are never touched.
//
// The writer goes on only before the wall(), which is
//   - kLinesAtFirst, until there is no room before it: then it grows, to twice as many lines;
//   - the end of one page, while another thread gives the other pages back (lend): that thread and the writer never touch the same page. When
//     they have been given back, the writer begins again with few lines (forget); if nobody has begun to do that, it has its old wall again
//     (keep).
//
// Threads: as RingWriter. Invariants: while they are not lent, no line at or after touched() has a page, but that of a line that was kept when the
// others were given back.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arch/arch.hpp"
#include "wire/frame.hpp"

namespace rove::fabric {

inline constexpr std::uint64_t kRingBytes = 1024 * 1024;
inline constexpr std::uint64_t kRingLines = kRingBytes / wire::kLineBytes;

// The lines that a writer uses at first, and again after it has been idle: 32 KiB, less one line because the reader looks at the line after the
// last frame, and less what a region has before its rings, so that these lines end with a page.
inline constexpr std::uint64_t kLinesBeforeRing = 2;
inline constexpr std::uint64_t kLinesAtFirst = 512 - kLinesBeforeRing - 1;

class RingPages {
public:
    [[nodiscard]] std::uint64_t wall() const { return wall_; }
    [[nodiscard]] std::uint64_t touched() const { return std::max(touched_, wall_); }
    // They are being given back: nothing is written at the wall or after it.
    [[nodiscard]] bool are_lent() const { return are_lent_; }

    // That line, from the ring's beginning, and those before it are written.
    void touch(std::uint64_t last) { touched_ = std::max(touched_, last + 1); }
    // For a frame that ends before that line, and has no room before the wall. Precondition: they are not lent.
    void grow(std::uint64_t end) { wall_ = std::min(kRingLines, std::max(2 * wall_, end)); }

    // All but the page of line `next` are being given back. Precondition: they are not lent.
    void lend(std::uint64_t next) {
        wall_before_ = wall_;
        const std::uint64_t lines_of_page = arch::page_bytes() / wire::kLineBytes;
        wall_ =
            std::min(kRingLines, ((next + kLinesBeforeRing) / lines_of_page + 1) * lines_of_page - kLinesBeforeRing);
        are_lent_ = true;
    }
    // They stay after all. Precondition: they are lent.
    void keep() {
        wall_ = std::max(wall_, wall_before_);
        are_lent_ = false;
    }
    // They have been given back.
    void forget() {
        wall_ = kLinesAtFirst;
        touched_ = 0;
        are_lent_ = false;
    }

private:
    std::uint64_t wall_ = kLinesAtFirst;
    std::uint64_t wall_before_ = 0;  // they were lent
    std::uint64_t touched_ = 0;      // the lines that were written before the wall was moved
    bool are_lent_ = false;
};

}  // namespace rove::fabric
