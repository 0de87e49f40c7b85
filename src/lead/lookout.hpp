// Lookout: what a thread that keeps watch reads from the state of the lead (baton.hpp): that a function has run for too long, or that the
// lead is free.
//
// Threads: as Baton. No state: a Lookout changes nothing in the Baton, and the thread that keeps watch has the `Seen`.
#pragma once

#include <cstdint>

#include "lead/baton.hpp"

namespace rove {

class Lookout {
public:
    explicit Lookout(const Baton& baton) : baton_(baton) {}

    // State that a watching thread keeps from one look to the next.
    struct Seen {
        std::uint64_t run = 0;  // the function that ran: 0: none
        std::uint64_t waits = 0;
    };
    enum class Look : std::uint8_t {
        stay,       // nothing to do: check again
        take,       // the lead can be taken
        take_over,  // the leader has been in one function for too long: its lead must be handed over first
    };

    [[nodiscard]] Seen begin() const { return {.waits = baton_.waits_}; }
    // For a follower. `runs_function`, here and below: the leader is in a function, which may be taken from it. Not `due`: the thread was
    // woken before its time to check, which does not show how long a function has run.
    [[nodiscard]] Look by_follower(Seen& seen, bool runs_function, bool due = true) const {
        if (!baton_.leading_) {
            if (baton_.offered_ || (baton_.waiting_ == baton_.quiet_ && baton_.waits_ == seen.waits)) return Look::take;
            seen.waits = baton_.waits_;
            return Look::stay;
        }
        if (baton_.quiet_leads_ && baton_.idle_)
            return Look::take;  // it takes replies only: this thread takes calls as well
        return due ? at_run(seen, runs_function) : Look::stay;
    }
    // For the thread that watches while it waits for a call.
    [[nodiscard]] Look by_waiting(Seen& seen, bool runs_function) const {
        return baton_.leading_ && baton_.followers_ == 0 ? at_run(seen, runs_function) : Look::stay;
    }
    // For the standby thread.
    [[nodiscard]] Look by_standing_by(Seen& seen, bool runs_function) const {
        if (baton_.has_others() || baton_.offered_) {
            seen = {};
            return Look::stay;
        }
        if (baton_.leading_) return at_run(seen, runs_function);
        return Look::take;
    }

private:
    [[nodiscard]] Look at_run(Seen& seen, bool runs_function) const {
        if (runs_function && baton_.runs_ == seen.run) return Look::take_over;
        seen = {.run = runs_function ? baton_.runs_ : 0, .waits = baton_.waits_};
        return Look::stay;
    }

    const Baton& baton_;
};

}  // namespace rove
