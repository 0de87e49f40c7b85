// Gathering: a function that is begun when the first part of its large payload arrives, and reads the parts out of the mailbox itself.
// Its arguments are then copied once on this node, and not twice (to a place of their own, and from there into the arguments).
//
// Only functions do so whose code has said that it can (rove_payload_gathers), on direct links, with a thread of the node's own, and while
// another thread can take the lead over. All other payloads are put together first (PayloadParts). The user's function runs when the call's
// own frame has arrived, after the last part: when it runs, and how often, is the same either way.
//
// While it reads, it reads the peer's ring of calls in place of the leader. A frame between the parts (another thread's call) is served by the
// leader: the run passes the mailbox to the leader, which returns it at the next frame that belongs to the payload. So frames
// are served in their order, and the two never read one mailbox at once.
// If another thread has taken over the lead, the run keeps the mailbox until the user's function has returned, or has run for as long as a
// leader may before others serve: so later calls do not overtake this one, just as if the leader ran it.
//
// Threads: `Gatherings::runs_part` by the leader; next() and skip_rest() by the run's thread, without the lock; all else under the lock.
//
// Invariants: while `has_mailbox_` is set, only the run's thread reads the peer's ring of calls. A Gathering leaves State::reading once, and
// then gives back what it counts for: its room among the peer's payloads, and its extra thread. One peer has at most one that reads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "engine/answers.hpp"
#include "lead/housekeeping_clock.hpp"
#include "lead/runner.hpp"
#include "peer/frame_checks.hpp"
#include "peer/payload_parts.hpp"

struct rove_here;

namespace rove {

class Gatherings;

class Gathering final : public MailboxReader {
public:
    Gathering(const Gathering&) = delete;
    Gathering& operator=(const Gathering&) = delete;

    // ---- by the leader (MailboxReader)
    [[nodiscard]] bool keeps_mailbox() const override REQUIRES(lock_of<EngineLock>);
    void give_back_if_long() override REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool is_called() const override REQUIRES(lock_of<EngineLock>) { return state_ == State::called; }
    [[nodiscard]] bool takes(const wire::Frame& frame) override REQUIRES(lock_of<EngineLock>);

    // ---- by the run's thread
    enum class Next : std::uint8_t {
        part,  // of the payload: part(), until next() is asked again
        call,  // all have been read, and the call has arrived: the function runs
        over,  // the call will not arrive
    };
    // Waits for it. Once it has given `call` or `over`, it gives that again. What finds no memory cuts the link, as for any frame: `over`.
    [[nodiscard]] Next next(rove_here& here) noexcept EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] Bytes part() const { return part_; }
    [[nodiscard]] std::size_t total_bytes() const { return total_bytes_; }
    void skip_rest(rove_here& here) noexcept EXCLUDES(lock_of<EngineLock>) {
        while (next(here) == Next::part) continue;
    }

private:
    enum class State : std::uint8_t { reading, called, over };

    friend class Gatherings;
    Gathering(Gatherings& all, PeerState& from, const wire::Part& first, std::uint32_t handle)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool is_own(const wire::Frame& frame) const REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Next wait_for_next(rove_here& here) EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] std::optional<Next> look(rove_here& here) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Next take(const wire::Frame& frame, rove_here& here) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Next take_part(const wire::Frame& frame) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Next take_call(const wire::Frame& frame, rove_here& here) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Next refuse(std::string_view what) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Next end(State state) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool has_run_long() const REQUIRES(lock_of<EngineLock>);
    void give_mailbox() REQUIRES(lock_of<EngineLock>);
    void mind_the_lead(bool arrived) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool leads() const REQUIRES(lock_of<EngineLock>);
    void pause() const;

    Gatherings& all_;
    const std::shared_ptr<PeerState> peer_;
    // By which the first part came; null: it is no longer needed.
    std::shared_ptr<fabric::Link> link_ GUARDED_BY(lock_of<EngineLock>);
    Run* run_ GUARDED_BY(lock_of<EngineLock>) = nullptr;
    const std::uint64_t number_;
    const std::uint32_t handle_;
    const std::size_t total_bytes_;
    const TimePoint begun_ = Clock::now();
    const MakingProcess process_;

    State state_ = State::reading;                              // changed by the run's thread, under the lock
    std::atomic<bool> has_mailbox_{true};                       // changed under the lock; looked at without
    bool part_in_use_ GUARDED_BY(lock_of<EngineLock>) = false;  // it is at the mailbox's tail
    Bytes part_;                                                // set under the lock, for the run's thread alone
    InParts parts_ GUARDED_BY(lock_of<EngineLock>);

    std::optional<TimePoint> waits_since_{};  // for a frame …
    AwaitedSignals awaited_{};                // … which is announced there; it has room for the signals of a link
};

// Those of a node.
class Gatherings {
public:
    // The parts of the node that this one uses. They outlive it.
    struct Beside {
        Engine& engine;  // for functions, which may ask where they run
        const NodeOptions& options;
        const std::unique_ptr<code::CodeCache>& cache;  // made when the node starts
        Lead& lead;
        Runner& runner;
        OwnThreads& own_threads;
        const FrameChecks& checks;
        Answers& answers;
        PayloadParts& payload_parts;
        HousekeepingClock& housekeeping;
        std::function<void(Run&, rove_here&)> run;  // the function, without the lock; nothing leaves it
        std::function<bool(const PeerState&, TimePoint)> others_wait;  // for the leader: anything but this peer's calls
    };
    explicit Gatherings(Beside beside) : beside_(std::move(beside)) {}

    // Begins a function's run if this is the first part of a payload that can be read in this way. False: nothing was done; PayloadParts takes
    // the part. True: the part is no longer in the mailbox, and the lead may have been lost.
    [[nodiscard]] bool runs_part(PeerState& from, const wire::Frame& part, Lead::Turn& turn)
        REQUIRES(lock_of<EngineLock>);
    // How many calls' payloads the node has gathered since it was made; for tests.
    [[nodiscard]] std::uint64_t done() const EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] unsigned running() const EXCLUDES(lock_of<EngineLock>);  // now; for tests, too

private:
    friend class Gathering;
    [[nodiscard]] bool may_begin(const PeerState& from, const wire::Part& first, const Lead::Turn& turn) const
        REQUIRES(lock_of<EngineLock>);

    const Beside beside_;
    std::uint64_t done_ GUARDED_BY(lock_of<EngineLock>) = 0;
};

}  // namespace rove
