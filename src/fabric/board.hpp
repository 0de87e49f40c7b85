// The board: bits by which the senders of cold links (Fabric::cool) say that they have sent something, so that the receiver looks at one line
// and not at each mailbox. The receiver owns it (Board); each sender has a place on it, one bit (PlaceOnBoard).
//
// A sender sets its bit, then that of its group in the summary. The receiver clears the summary's bit, then reads and clears the group's: so a
// bit that is set is seen. Whoever has a place can write all of the board: can set bits, which costs the receiver looks at mailboxes in vain, and
// clear others', whose frames are seen when all mailboxes are looked at (Fabric::look_at_cold).
//
// Invariant: once a bit is set and its sender is quiet, the summary has it, until the owner looks.
//
// Threads: a Board is used by one thread at a time, a PlaceOnBoard likewise; the owner and the senders are different threads or processes.
// Without a lock, any thread may load the word at summary().
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "fabric/ring.hpp"
#include "wire/frame.hpp"

namespace rove::fabric {

class MayBeCold;

inline constexpr std::size_t kBoardGroups = 64, kBoardWordsPerGroup = 5;
inline constexpr std::uint32_t kBoardPlaces = kBoardGroups * kBoardWordsPerGroup * 64;

// One page, which the owner and all senders map.
struct alignas(4096) BoardMemory {
    alignas(wire::kLineBytes) std::uint32_t asleep;   // set by the owner before it sleeps; whoever clears it rings
    alignas(wire::kLineBytes) std::uint64_t summary;  // a bit for each group
    alignas(wire::kLineBytes) std::uint64_t groups[kBoardGroups][kBoardWordsPerGroup];  // a bit for each sender
};
// docs/frames.md promises these places.
static_assert(offsetof(BoardMemory, asleep) == 0 && offsetof(BoardMemory, summary) == 64 &&
              offsetof(BoardMemory, groups) == 128 && sizeof(BoardMemory) == 4096);

// The bit of one sender.
class PlaceOnBoard {
public:
    PlaceOnBoard() = default;
    // Precondition: place < kBoardPlaces. The memory outlives this.
    PlaceOnBoard(BoardMemory& memory, std::uint32_t place) : memory_(&memory), place_(place) {}

    // After something was sent. True: the owner sleeps, and is to be woken by the caller.
    [[nodiscard]] bool set() const;
    // What the owner wants of the sender, which has taken that word back. True: the caller rings the owner's bell.
    [[nodiscard]] bool give(Wanted wanted) const { return wanted == Wanted::bell || (wanted == Wanted::bit && set()); }

private:
    BoardMemory* memory_ = nullptr;
    std::uint32_t place_ = 0;
};

class Board {
public:
    // The memory, of zeros at first, outlives this.
    explicit Board(BoardMemory& memory) : memory_(memory) {}
    Board(const Board&) = delete;

    // A place for the link; none: all are taken. Throws std::bad_alloc.
    [[nodiscard]] std::optional<std::uint32_t> give_place(MayBeCold& link);
    void take_back(std::uint32_t place) noexcept {
        links_[place] = nullptr;
        free_.push_back(place);  // there is room for all
    }

    // Whether a bit is to be looked at now. A board whose bits are set in vain is looked at less often. Asked once a turn. While it is ignored,
    // every eighth of these reads the clock, which takes as long as the rest of a turn that finds nothing.
    [[nodiscard]] bool is_due() {
        if (!is_set()) return false;
        return !ignores_ || (++looks_ % kLooksAtClock == 0 && !ignores(Clock::now()));
    }
    // Bits are set, and are not to be looked at before that. Nothing: none are, or they are to be looked at now.
    [[nodiscard]] std::optional<TimePoint> ignored_until(TimePoint now) {
        return is_set() && ignores(now) ? std::optional(ignored_until_) : std::nullopt;
    }
    [[nodiscard]] bool is_set() const { return std::atomic_ref(memory_.summary).load(std::memory_order_relaxed) != 0; }
    // Not zero while a bit is set. Null: the board is ignored.
    [[nodiscard]] const std::uint64_t* summary() {
        return ignores_ && ignores(Clock::now()) ? nullptr : &memory_.summary;
    }
    // Clears the bits, and warms those of their links whose senders have taken the announcement: they will not say more. Stops soon after kVainMax of
    // the bits were in vain: the others stay set, and the next look begins with them. True: the senders of some links are doubted, so the caller's fence
    // (SleepFence) and look_at_doubted() follow. That happens once in kIgnoredMax at most.
    [[nodiscard]] bool take() noexcept;
    void look_at_doubted() noexcept;
    static constexpr unsigned kVainMax = 64;

    // Before a sleep, and after it. The caller's fence (SleepFence) follows the first.
    void announce_sleep(bool asleep) {
        announces_sleep_ = asleep;
        std::atomic_ref(memory_.asleep).store(asleep ? 1 : 0, std::memory_order_seq_cst);
    }
    // Whether the owner sleeps, or is about to: what every link of its announces.
    [[nodiscard]] bool announces_sleep() const { return announces_sleep_; }

private:
    // A board whose bits were set in vain is not looked at for the first of these times, then twice as long, up to the second.
    static constexpr auto kIgnoredMin = std::chrono::nanoseconds(500), kIgnoredMax = std::chrono::nanoseconds(200'000);

    static constexpr unsigned kLooksAtClock = 8;

    struct Taken {
        unsigned useful = 0, in_vain = 0;
    };

    // It does not any more, once that time has passed.
    [[nodiscard]] bool ignores(TimePoint now) {
        if (now >= ignored_until_) ignores_ = false;
        return ignores_;
    }
    void take_word(std::size_t group, std::size_t word, Taken& taken) noexcept;
    [[nodiscard]] bool take_words(std::size_t group, std::size_t from, std::size_t to, Taken& taken) noexcept;

    BoardMemory& memory_;
    std::vector<MayBeCold*> links_;               // by place; null: free
    std::vector<std::uint32_t> free_;             // the places that were taken back
    std::vector<MayBeCold*> doubted_;             // between take() and look_at_doubted()
    std::size_t next_group_ = 0, next_word_ = 0;  // with which take() begins
    bool announces_sleep_ = false;
    bool ignores_ = false;
    std::chrono::nanoseconds ignored_for_{0};  // the last time, if bits are still set in vain
    TimePoint ignored_until_{};
    unsigned looks_ = 0;
};

}  // namespace rove::fabric
