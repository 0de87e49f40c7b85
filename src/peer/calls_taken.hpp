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
#include "lead/engine_lock.hpp"
#include "peer/parked.hpp"
#include "peer/staging.hpp"
#include "wire/frame.hpp"

namespace rove {

// A run that reads one of a peer's calls out of the mailbox itself, in place of the leader (engine/gathering.hpp).
class MailboxReader {
public:
    // Whether it reads the peer's calls, so that the leader must not. No longer once its function has run for too long.
    [[nodiscard]] virtual bool keeps_mailbox() const REQUIRES(lock_of<EngineLock>) = 0;
    // For the leader, before it reads them: takes them back from a run whose function has run for too long.
    virtual void give_back_if_long() REQUIRES(lock_of<EngineLock>) = 0;
    // Whether its function runs. When it has run for too long nobody is woken: the leader has to ask again by then.
    [[nodiscard]] virtual bool is_called() const REQUIRES(lock_of<EngineLock>) = 0;
    // Offers the next frame among the calls. True: it belongs to the payload, and the run has the mailbox again.
    [[nodiscard]] virtual bool takes(const wire::Frame& frame) REQUIRES(lock_of<EngineLock>) = 0;

protected:
    ~MailboxReader() = default;
};

class CallsTaken {
public:
    std::optional<Parked> parked;  // the first, which waits
    Staging staged;                // payloads that arrive in parts

    // The next payload waits in the mailbox until others' are taken, because all peers together have as many as may be.
    [[nodiscard]] bool waits_to_stage() const { return waits_to_stage_; }
    void set_waits_to_stage(bool waits) { waits_to_stage_ = waits; }

    // Null: the leader reads them.
    [[nodiscard]] MailboxReader* reader() const { return reader_; }
    [[nodiscard]] bool are_read_by(const MailboxReader& run) const { return reader_ == &run; }
    void begin_reading(MailboxReader& run) { reader_ = &run; }
    // Nothing happens where another run reads them, or none.
    void end_reading(const MailboxReader& run) {
        if (reader_ == &run) reader_ = nullptr;
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
        reader_ = nullptr;
    }

private:
    bool waits_to_stage_ = false;
    bool are_quick_ = false;
    TimePoint looked_at_{};
    std::uint64_t taken_at_look_ = 0;
    MailboxReader* reader_ = nullptr;
};

}  // namespace rove
