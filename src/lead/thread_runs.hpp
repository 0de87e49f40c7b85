// ThreadRuns: the functions and callbacks that the calling thread is in, one on top of the other, whichever engines they are on. All but the
// innermost one wait, and all of them share the thread's one stack.
//
// Threads: each thread reads its own state, without a lock. Runner writes it.
//
// Invariants: innermost() is what the thread executes now, and beneath() leads from there to the outermost. A Run that is found so has not
// returned. nested() is at most the number of runs that the thread is in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/stack.hpp"
#include "lead/run.hpp"

namespace rove {

// The largest number of functions on one thread that wait for calls, one within the other: bounds the stack, and ends circular calls.
// Dispatcher's frames alone take 1.5 KiB for each, together 192 KiB of a thread's 8 MiB.
inline constexpr unsigned kNestedMax = 128;
// No function is run on top of another with less than this left of the thread's stack: a function may rely on this much, whichever others
// wait beneath it. It is a sixteenth of the 8 MiB that threads have unless their program says otherwise.
inline constexpr std::size_t kStackReserveBytes = 512UL * 1024;

class ThreadRuns {
public:
    // A function or a callback, and the runner of its engine; null: there is none.
    struct Within {
        Runner* of = nullptr;
        Run* run = nullptr;
    };
    // The innermost one, and the one that waits beneath a run.
    [[nodiscard]] static Within innermost() { return {top_.runner, top_.run}; }
    [[nodiscard]] static Within beneath(const Run& run) { return {run.beneath_of, run.beneath}; }
    // Whether the thread is in a function or a callback.
    [[nodiscard]] static bool is_in_any() { return top_.runner != nullptr; }
    // Whether it is in a function, with no callback on top.
    [[nodiscard]] static bool is_in_function() { return top_.run != nullptr && top_.run->function != nullptr; }
    // Whether it is in that function or callback, or waits on top of it.
    [[nodiscard]] static bool is_in(const Run& run);

    // The number of functions that wait in it, one on top of the other.
    [[nodiscard]] static unsigned nested() { return nested_; }
    // Whether no more may be nested: if other threads can run further calls, this one runs nothing more on top.
    [[nodiscard]] static bool is_deep() {
        return nested_ > 0 && (nested_ >= kNestedMax || stack_left() < kStackReserveBytes);
    }
    // While the sum of the changes is not 0, the thread takes replies only when it waits.
    static void forbid_nesting(int change) { no_nesting_ += static_cast<unsigned>(change); }
    [[nodiscard]] static bool is_nesting_forbidden() { return no_nesting_ > 0; }

private:
    friend class Runner;

    // The run that this thread has begun, without the lock, and the turn in which it led: if the run waits for a call, the lead is given up.
    struct Top {
        Runner* runner = nullptr;
        std::uint64_t term = 0;
        Run* run = nullptr;
    };
    // Initial-exec: a plain load relative to the thread pointer, also from librove.so; constinit: no check whether it was initialised.
    static constinit thread_local Top top_ [[gnu::tls_model("initial-exec")]];
    // This thread's waits within functions, and its scopes in which it waits quietly.
    static constinit thread_local unsigned nested_ [[gnu::tls_model("initial-exec")]],
        no_nesting_ [[gnu::tls_model("initial-exec")]];
};

}  // namespace rove
