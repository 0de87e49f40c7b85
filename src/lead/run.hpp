// Run: one function, or callback, that has begun on a node and has not returned.
//
// Threads: under the engine's lock, except: `payload_read` and `large_read_at`, which the function's own thread writes without it; `here`, which
// that thread writes before the function begins; and what is constant from then on (`function`, `entry`, `is_large`), which it reads.
//
// Invariants: a Run is on the stack of the thread that it runs in, and is removed from LongRuns before it is destroyed. Until `handed_over` the
// leader protects its code and its frame; afterwards `entered` protects the code, and `holds` the frame, unless the frame has been read.
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

// A function, or a callback of a call that ended. It begins in the leader's thread.
struct Run {
    code::Function* function = nullptr;  // null: a callback
    code::EntryPoint entry = nullptr;
    RanAs ran = RanAs::resident;
    fabric::Link* link = nullptr;            // the link of its frame; null: this node's own frame, or none
    const PeerState* from = nullptr;         // the peer of that link
    AwaitedSignals* awaited = nullptr;       // the signals of its turn at the lead, unused while it runs
    bool on_own_thread = false;              // it runs on a thread of the node's own, with nothing beneath it
    std::optional<code::Entered> entered{};  // nothing: CodeCache::enter_leading protects its code
    std::atomic<bool> payload_read{false};   // its frame is not needed any more
    bool is_large = false;                   // its payload was assembled from parts, and may take long to read
    std::atomic<TimePoint> large_read_at{};  // when it had read its large payload: its own work begins there
    // Used once another thread leads:
    bool handed_over = false;
    std::optional<TimePoint> noticed{};  // when the deadlock check first saw it
    bool warned = false;                 // a deadlock was reported
    bool waits = false;                  // it waits for a call, in the thread that it runs in
    bool has_place = false;              // it has one of the places for functions that run long
    // It has waited quietly on a thread of the node's own, and another thread replaces that one.
    bool replaced = false;
    rove_here* here = nullptr;     // the function's argument
    Run* beneath = nullptr;        // the run that waits beneath it in the same thread, on whichever engine …
    Runner* beneath_of = nullptr;  // … with this runner, whose lock guards it
    Run* next_long = nullptr;      // the next one in LongRuns
    TimePoint begun{};
    Duration waited{};                        // time spent waiting for calls since `begun`
    std::shared_ptr<fabric::Link> holds{};    // `link`, if …
    std::uint64_t held = 0;                   // … the frame is held in its mailbox
    Gathering* gathering = nullptr;           // set while it reads its payload, which is still arriving
    [[gnu::always_inline]] ~Run() = default;  // inlined: each call has a Run
    // The function that waits beneath it; null: there is none. It was set before this run began, and does not change.
    [[nodiscard]] const code::Function* nested_in() const { return beneath != nullptr ? beneath->function : nullptr; }
    // Gives the frame's place back. Called under the lock, because this may be the last reference to the link. True: the credit for it is
    // sent by messages, which a leader has to progress, and the leader may be asleep.
    [[nodiscard]] bool let_go() {
        const bool by_messages = holds && holds->by_messages();
        if (holds) holds->let_go(fabric::Traffic::calls, held);
        holds.reset();
        return by_messages;
    }
};

// Runs beside the leader. add() needs no memory, because the thread that keeps watch calls it and has no caller to which it could report a
// failure.
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
    // Does nothing if `run` is not in the list.
    void remove(const Run& run) noexcept {
        for (Run** at = &first_; *at != nullptr; at = &(*at)->next_long)
            if (*at == &run) return void(*at = run.next_long);
    }

private:
    Run* first_ = nullptr;
};

}  // namespace rove
