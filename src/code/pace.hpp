// Pace: how long the runs of a function have taken on a node, and what the node expects of the next one.
//
//   short   its last run did not delay other calls
//   long    a run of it delayed the mailboxes, and none has been short since: the next one gets a thread, or waits for one
//   neither nothing is known
//
// A short run that the kernel interrupts looks like a long one. So a function is tried again, even while all threads are taken, once none of
// its long runs is left, because only another run can show how long it takes. A function that was never short, and long several times, is not
// tried.
//
// Threads: any. The engines of a node share it, each under its own lock, so its parts are atomic. If two engines write at the same time, the
// result of one run may be lost until the next run.
//
// Invariant: the places are counted exactly. A long function whose last run ended in the leader's thread is both long and short.
#pragma once

#include <algorithm>
#include <atomic>

#include "base/clock.hpp"

namespace rove::code {

class Pace {
public:
    // A run that takes longer is long. A node's watch checks at the same interval (lead.cpp).
    static constexpr Duration kShort = std::chrono::microseconds(500);
    [[nodiscard]] bool is_long() const { return is_long_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool is_short() const { return is_short_.load(std::memory_order_relaxed); }
    // Whether it is long, as far as is known, but perhaps by chance.
    [[nodiscard]] bool may_be_tried() const {
        return get(places_) == 0 && (get(was_short_) || get(long_ends_) < kLongEnds);
    }
    // Whether a run of it has ended, however long it took.
    [[nodiscard]] bool has_ended() const { return get(was_short_) || get(has_ended_apart_); }

    // A run of it delays the mailboxes.
    void seen_long() {
        set(is_long_, true);
        set(is_short_, false);
    }
    // A run has ended without that. Mostly there is nothing to write.
    void ended_at_once() {
        if (is_short()) return;
        set(is_short_, true);
        set(was_short_, true);
    }
    // A run has ended that had a thread of its own. `took`: without the time in which its large payload was read, which is `reading`; that
    // payload has to be freed as well.
    void ended(Duration took, Duration reading) {
        set(has_ended_apart_, true);
        if (took < std::max(kShort, reading))
            set(is_long_, false);
        else if (const unsigned ends = get(long_ends_); ends < kLongEnds)
            set(long_ends_, ends + 1);
    }
    // Saved and restored around a run from which nothing is learnt.
    struct Short {
        bool is, was;
    };
    [[nodiscard]] Short how_short() const { return {is_short(), get(was_short_)}; }
    void set_short(Short before) {
        set(is_short_, before.is);
        set(was_short_, before.was);
    }

    // Runs of it that have a thread of their own, and do not wait for calls.
    void take_place() { places_.fetch_add(1, std::memory_order_relaxed); }
    void give_place() { places_.fetch_sub(1, std::memory_order_relaxed); }

private:
    static constexpr unsigned kLongEnds = 3;
    template <typename T>
    static T get(const std::atomic<T>& which) {
        return which.load(std::memory_order_relaxed);
    }
    template <typename T>
    static void set(std::atomic<T>& which, T to) {
        which.store(to, std::memory_order_relaxed);
    }
    std::atomic<bool> is_long_{false}, is_short_{false}, was_short_{false}, has_ended_apart_{false};
    std::atomic<unsigned> long_ends_{0}, places_{0};
};

}  // namespace rove::code
