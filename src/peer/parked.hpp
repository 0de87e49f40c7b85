// Parked: a call frame at the head of a peer's mailbox that cannot run yet. Calls from one peer start in their order, so those after it
// wait in the mailbox, too; replies and code pass by in the prompt ring.
//
// Threads: under the engine's lock.
//
// Invariants: a call waits for one thing at a time: its code, the cache that makes it ready, or a thread. Each wait has its own time limit:
// kCodeWaitMax since the question or the last piece of code, kCompileWaitMax for the cache. What was there and is gone again (evicted,
// forgotten) is asked for again.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <variant>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace rove {

// When a piece of code found no room, or code that came had to make way at once, it is asked for again after this long.
inline constexpr auto kAskAgainAfter = std::chrono::milliseconds(200);
// How long a parked call waits for its code before it fails. Code is sent by a live process over a link that is watched,
// so this only ends waits for a peer that is stopped.
inline constexpr auto kCodeWaitMax = std::chrono::seconds(5);
// How long it waits for the compiler. The largest C++ modules take some seconds; others' may be compiled before.
inline constexpr auto kCompileWaitMax = std::chrono::seconds(60);

class Parked {
public:
    FunctionId function;       // all zero: known by handle only
    std::uint32_t handle = 0;  // that the frame names it by, if it does so

    // ---- begin to wait, or continue to wait, for …
    // … its code. True: the caller must ask a peer for it now.
    [[nodiscard]] bool wait_for_code(TimePoint now);
    // … the cache, which has the code.
    void wait_for_cache(TimePoint now);
    // … a thread: too many functions run long, and the end of one will tell. held_until: too many wait quietly, and it is refused then.
    void wait_for_thread(std::optional<TimePoint> held_until) { waits_ = ForThread{held_until}; }
    // … nothing: it cannot run.
    void refuse(Error why) { waits_ = std::move(why); }

    // ---- while it waits for code
    // asked: who was, by the name that it has here (PeerState::back). origin: who made the call.
    void was_asked(NodeId asked, NodeId origin);
    [[nodiscard]] bool waits_for_code_of(NodeId asked) const;
    [[nodiscard]] NodeId origin() const;  // kNoNode: it waits for no code
    // Code that arrived for it was dropped for lack of room.
    void was_dropped(TimePoint now);
    // A piece has arrived: the code is arriving for as long as more pieces follow. Not if it had arrived whole and was evicted.
    void is_arriving(TimePoint now);
    // A form that runs here has arrived. If the call still cannot run, the code was evicted.
    void has_come(TimePoint now);
    // The peer that was asked reports that it lacks the code, perhaps in answer to an earlier call's question. True: it is asked once more, after a
    // while, unless the code arrives before.
    [[nodiscard]] bool ask_once_more(TimePoint now);
    // It has arrived once, and is asked for again.
    [[nodiscard]] bool code_has_come() const;
    // Whether a question or an answer about code is about this one.
    [[nodiscard]] bool is_about(const FunctionId& named, std::uint32_t by_handle) const;

    [[nodiscard]] bool waits_for_code() const { return std::holds_alternative<ForCode>(waits_); }
    [[nodiscard]] bool waits_for_thread() const { return std::holds_alternative<ForThread>(waits_); }
    [[nodiscard]] std::optional<TimePoint> held_until() const;
    // Why it cannot run; null: it may yet.
    [[nodiscard]] const Error* why_not() const { return std::get_if<Error>(&waits_); }
    // Why it has waited for too long, if it has.
    [[nodiscard]] std::optional<Error> expired(TimePoint now) const;

private:
    struct ForCode {
        TimePoint since;
        NodeId asked = kNoNode, origin = kNoNode;
        std::optional<TimePoint> ask_again = {};
        bool has_come = false, was_lacked = false;
    };
    struct ForCache {
        TimePoint since;
    };
    struct ForThread {
        std::optional<TimePoint> held_until;
    };
    struct Nothing {};  // yet
    std::variant<Nothing, ForCode, ForCache, ForThread, Error> waits_;
};

}  // namespace rove
