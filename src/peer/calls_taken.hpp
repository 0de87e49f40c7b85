// CallsTaken: how far this node is with the calls of one peer.
//
// Threads: under the engine's lock.
//
// Invariants: at most one run reads the peer's mailbox itself, and only that run ends its reading. All of this is about the present link, and is
// forgotten with it.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "peer/parked.hpp"
#include "peer/staging.hpp"

namespace rove {

class Gathering;

class CallsTaken {
public:
    std::optional<Parked> parked;  // the first, which waits
    Staging staged;                // payloads that arrive in parts

    // The next payload waits in the mailbox until others' are taken, because all peers together have as many as may be.
    [[nodiscard]] bool waits_to_stage() const { return waits_to_stage_; }
    void set_waits_to_stage(bool waits) { waits_to_stage_ = waits; }

    // The run that reads one of the calls out of the mailbox itself; null: none does.
    [[nodiscard]] Gathering* gathering() const { return gathering_; }
    [[nodiscard]] bool are_read_by(const Gathering& run) const { return gathering_ == &run; }
    void begin_gathering(Gathering& run) { gathering_ = &run; }
    // Nothing happens where another run reads them, or none.
    void end_gathering(const Gathering& run) {
        if (gathering_ == &run) gathering_ = nullptr;
    }

    // Whether all calls of a whole turn were quick, and none has been slow since (Dispatcher::serve_calls).
    [[nodiscard]] bool are_quick() const { return are_quick_; }
    // At the clock, during them.
    [[nodiscard]] TimePoint looked_at() const { return looked_at_; }
    void look(TimePoint now, bool are_quick) {
        looked_at_ = now;
        are_quick_ = are_quick;
    }
    // Whether more of them were taken since this was asked last. `lines_read`: of the mailbox's calls, ever.
    [[nodiscard]] bool note_progress(std::uint64_t lines_read) {
        return std::exchange(taken_at_look_, lines_read) != lines_read;
    }

    // Needs no memory. The room of payloads that were arriving is PayloadParts' to count: forget_all() is called before this.
    void forget() {
        parked.reset();
        (void)staged.clear();
        waits_to_stage_ = are_quick_ = false;
        looked_at_ = {};
        taken_at_look_ = 0;
        gathering_ = nullptr;
    }

private:
    bool waits_to_stage_ = false;
    bool are_quick_ = false;
    TimePoint looked_at_{};
    std::uint64_t taken_at_look_ = 0;
    Gathering* gathering_ = nullptr;
};

}  // namespace rove
