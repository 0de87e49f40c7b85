// Wakes: wakes threads of an engine: the leader, which checks mailboxes or sleeps; threads that wait for an event; and threads that wait for
// the lead. Baton decides which threads to wake.
//
// Threads: any thread may wake others, under the engine's lock; wake_unlocked() and interrupt() need no lock. A thread that waits holds the
// lock, which is released while it waits.
//
// Invariant: no wake is lost. A wake after begin_work() ends the leader's next check for signals, or keeps the leader from sleeping; a wake
// while it sleeps ends the sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <vector>

#include "base/clock.hpp"
#include "lead/baton.hpp"
#include "lead/engine_lock.hpp"
#include "lead/sleeper.hpp"

namespace rove {

class Wakes {
public:
    // `descriptors`: the fabric's, which end the leader's sleep as well.
    [[nodiscard]] Status open(const std::vector<int>& descriptors) { return sleeper_.open(descriptors); }

    // ---- waking
    [[gnu::always_inline]] void tell(Baton::Tell whom) REQUIRES(lock_of<EngineLock>) {  // mostly none
        if (whom.waiting || whom.follower || whom.sleeper || whom.watch || whom.standby) tell_all_of(whom);
    }
    // Ends the leader's check for signals, and its sleep if it sleeps.
    void wake(bool leader_sleeps) {
        (void)raise_attention();
        if (leader_sleeps) sleeper_.kick();
    }
    // The same, without the lock. Where attention was wanted already, somebody has ended the sleep, or it has not begun: a leader does not fall
    // asleep over that.
    void wake_unlocked() noexcept {
        if (raise_attention()) sleeper_.kick();
    }
    // The same, and a poll() that waits returns. Async-signal-safe.
    void interrupt() noexcept {
        interrupted_ = true;
        wake_unlocked();
    }
    [[nodiscard]] bool take_interrupt() noexcept { return interrupted_.exchange(false); }
    // Something has happened, or the leader is awake again.
    void tell_looking() REQUIRES(lock_of<EngineLock>) {
        if (looking_ > 0) changed_.notify_all();
    }
    // Wakes all of the node's own threads, because it ends.
    void tell_own() {
        watch_.notify_all();
        followers_.notify_all();
        standing_by_.notify_all();
    }

    // ---- the leader
    // The leader begins its work, which sees what was changed before the wakes so far; later ones end its next check for signals. Mostly there
    // is none: then it stores nothing, so that a wake that comes at this moment is not overwritten, and this needs no fence. (That such a
    // wake is lost by a weaker order cannot be shown on x86.)
    void begin_work() {
        if (was_woken()) (void)attention_.exchange(false, std::memory_order_acquire);
    }
    // Whether a thread has woken it since then.
    [[nodiscard]] bool was_woken() const { return attention_.load(std::memory_order_relaxed); }
    // The same flag, to be read while spinning.
    [[nodiscard]] const std::atomic<bool>& attention() const { return attention_; }
    // Called without the lock. timeout: nothing has ended the sleep before the deadline.
    std::cv_status sleep(Deadline deadline) { return sleeper_.sleep(deadline); }

    // ---- waiting. timeout: the deadline has passed.
    // Waits for something to happen.
    std::cv_status await_change(HeldLock& lock, Deadline deadline) REQUIRES(lock_of<EngineLock>) {
        return await(changed_, lock, deadline);
    }
    // The same, for a thread that looks at the leader at intervals, and need not while that sleeps for long: until the leader is awake, too.
    std::cv_status await_change_or_leader(HeldLock& lock, Deadline deadline) REQUIRES(lock_of<EngineLock>);
    // One of the node's own threads waits for the lead.
    std::cv_status await_lead(HeldLock& lock, Deadline deadline) REQUIRES(lock_of<EngineLock>) {
        return await(followers_, lock, deadline);
    }
    // The follower on watch rests: until it is told that there is a lead for it, or that the leader is awake.
    void await_lead_or_leader(HeldLock& lock) REQUIRES(lock_of<EngineLock>);
    // The standby thread waits for the node's end, or until no other thread can lead.
    std::cv_status await_end(HeldLock& lock, Deadline deadline) REQUIRES(lock_of<EngineLock>) {
        return await(standing_by_, lock, deadline);
    }

private:
    // True: nobody had before. By an exchange, so that begin_work() sees what each of those did before who have raised it since the last time.
    bool raise_attention() noexcept { return !was_woken() && !attention_.exchange(true, std::memory_order_acq_rel); }
    void tell_all_of(Baton::Tell whom) REQUIRES(lock_of<EngineLock>);
    static std::cv_status await(std::condition_variable_any& event, HeldLock& lock, const Deadline& deadline)
        REQUIRES(lock_of<EngineLock>);

    std::atomic<bool> attention_{false};  // ends a check for signals: something was changed under the lock
    std::atomic<bool> interrupted_{false};
    Sleeper sleeper_;
    std::condition_variable_any changed_, followers_, watch_, standing_by_;
    int looking_ GUARDED_BY(lock_of<EngineLock>) = 0;              // threads in await_change_or_leader()
    bool waits_at_watch_ GUARDED_BY(lock_of<EngineLock>) = false;  // in await_lead_or_leader()
};

}  // namespace rove
