// Run: one function, or callback, that has begun on a node and has not returned.
//
// Threads: under the engine's lock, except `payload_read` and `large_read_at`, which the function's own thread writes without it.
//
// Invariants: a Run is on the stack of the thread that it runs in, and is removed from LongRuns before it is destroyed. Until `handed_over` the
// leader protects its code and its frame; afterwards `entered` protects the code, and `holds` the frame, unless that has been read.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "code/cache.hpp"
#include "fabric/fabric.hpp"
#include "lead/spin.hpp"

namespace rove {

class Gathering;
class PeerState;
class Runner;

// A function, or a callback of a call that ended, that runs in the leader's thread.
struct Run {
    code::Function* function = nullptr;  // null: a callback
    code::EntryPoint entry = nullptr;
    RanAs ran = RanAs::resident;
    fabric::Link* link = nullptr;            // that its frame came by; null: this node's own frame, or none
    const PeerState* from = nullptr;         // whose link that is
    AwaitedSignals* awaited = nullptr;       // of its thread's turn at the lead, which does not look meanwhile
    bool on_own_thread = false;              // of the node's, with nothing beneath it
    std::optional<code::Entered> entered{};  // nothing: by CodeCache::enter_leading
    std::atomic<bool> payload_read{false};   // its frame is not needed any more
    bool is_large = false;                   // its payload was put together from parts, and may take long to be read
    std::atomic<TimePoint> large_read_at{};  // when it had read its large payload: what it does itself begins there
    // Once another thread leads:
    bool handed_over = false;
    std::optional<TimePoint> noticed{};  // by whoever looks for deadlocks
    bool warned = false;                 // of one
    bool waits = false;                  // for a call, in the thread that it runs in
    bool has_place = false;              // among the functions that run long
    bool replaced = false;  // it has waited quietly on a thread of the node's own, which has another one in its place
    rove_here* here = nullptr;     // of a function that runs
    Run* beneath = nullptr;        // what waits beneath it in the same thread, of whichever engine …
    Runner* beneath_of = nullptr;  // … with this runner, whose lock guards it
    Run* next_long = nullptr;      // of LongRuns
    TimePoint begun{};
    Duration waited{};                        // for calls, since then
    std::shared_ptr<fabric::Link> holds{};    // `link`, where …
    std::uint64_t held = 0;                   // … the frame is held in its mailbox
    Gathering* gathering = nullptr;           // while it reads its payload, which is still arriving
    [[gnu::always_inline]] ~Run() = default;  // each call has one
    // The function that waits beneath it; null: there is none. It was set before this run began, and stays.
    [[nodiscard]] const code::Function* nested_in() const { return beneath != nullptr ? beneath->function : nullptr; }
    // Gives the frame's place back. Under the lock, because it may be the last to hold the link. True: the credit for that travels by
    // messages, which somebody who leads has to progress, and the leader may sleep.
    [[nodiscard]] bool let_go() {
        const bool by_messages = holds && holds->by_messages();
        if (holds) holds->let_go(fabric::Traffic::calls, held);
        holds.reset();
        return by_messages;
    }
};

// Runs beside the leader. Whoever puts one here needs no memory for it: it may be the thread that keeps watch, which has nobody to tell.
class LongRuns {
public:
    class Iterator {
    public:
        explicit Iterator(Run* at) : at_(at) {}
        Run& operator*() const { return *at_; }
        Iterator& operator++() {
            at_ = at_->next_long;
            return *this;
        }
        bool operator==(const Iterator&) const = default;

    private:
        Run* at_;
    };
    [[nodiscard]] Iterator begin() const { return Iterator(first_); }
    [[nodiscard]] static Iterator end() { return Iterator(nullptr); }
    void add(Run& run) noexcept { run.next_long = std::exchange(first_, &run); }
    // One that is not here is left alone.
    void remove(const Run& run) noexcept {
        for (Run** at = &first_; *at != nullptr; at = &(*at)->next_long)
            if (*at == &run) return void(*at = run.next_long);
    }

private:
    Run* first_ = nullptr;
};

}  // namespace rove
