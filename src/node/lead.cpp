// Leading: one thread at a time drains the mailboxes, and waits in a way that suits how long nothing has come.
#include <sched.h>

#include "node/control/control.hpp"
#include "node/core.hpp"

namespace rove {
namespace {

// Nothing came: look again at once for as long as a reply on this machine takes (a few microseconds), then let others
// have the core between looks, then sleep. With more nodes than cores a longer spin would keep the very thread from
// running that is waited for.
constexpr unsigned kSpinSteps = 100;
constexpr auto kYieldFor = std::chrono::microseconds(100);
// With frames that wait for credit, or parked ones, nobody rings: look again this soon.
constexpr auto kShortSleep = std::chrono::milliseconds(1);
constexpr auto kHousekeepingEvery = std::chrono::milliseconds(20);

void pause_cpu() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

}  // namespace

unsigned NodeCore::work(Lock& lock) {
    unsigned handled = fabric_->progress();
    // By index: a function that runs lets go of the lock, and peers may be added meanwhile.
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        const std::shared_ptr<PeerState> peer = peers_[i];
        if (peer->link) handled += serve(*peer, lock);
    }
    if (!local_.empty()) handled += serve_local(lock);
    if (const TimePoint now = Clock::now(); now >= housekeeping_due_) {
        housekeeping_due_ = now + kHousekeepingEvery;
        handled += housekeep(lock);
    }
    return handled;
}

unsigned NodeCore::lead_step(Lock& lock, std::optional<TimePoint> deadline) {
    const unsigned handled = work(lock);
    if (handled > 0) {
        idle_steps_ = 0;
    } else {
        idle(lock, deadline);
    }
    make_way(lock);
    return handled;
}

// A std::mutex is not fair: without this a leader that spins would keep everybody else out.
void NodeCore::make_way(Lock& lock) {
    if (wanting_.load(std::memory_order_relaxed) == 0) return;
    lock.unlock();
    while (wanting_.load(std::memory_order_relaxed) > 0) sched_yield();
    lock.lock();
}

void NodeCore::idle(Lock& lock, std::optional<TimePoint> deadline) {
    if (++idle_steps_ <= kSpinSteps) {
        if (idle_steps_ == 1) idle_since_ = Clock::now();
        pause_cpu();
        return;
    }
    const TimePoint now = Clock::now();
    if (now - idle_since_ < kYieldFor) {
        lock.unlock();
        sched_yield();
        lock.lock();
        return;
    }
    if (!deadline || *deadline > now) sleep(lock, deadline);
}

void NodeCore::sleep(Lock& lock, std::optional<TimePoint> deadline) {
    const auto no_later = [&deadline](TimePoint limit) { deadline = deadline ? std::min(*deadline, limit) : limit; };
    bool restless = local_parked_.has_value();
    bool pending = !local_.empty() && !restless;
    const bool quiet = fabric_->announce_sleep();
    for (const auto& peer : peers_) {
        if (!peer->link) continue;
        const bool waits = peer->parked || !peer->outbox[0].empty() || !peer->outbox[1].empty();
        restless = restless || waits;
        pending = pending || peer->lost || (!waits && peer->link->pending());
    }
    if (quiet && !pending) {
        if (restless) no_later(Clock::now() + kShortSleep);
        asleep_ = true;
        lock.unlock();
        sleeper_.sleep(deadline);
        lock.lock();
        asleep_ = false;
    }
    fabric_->end_sleep();
    idle_steps_ = kSpinSteps / 2;  // it may have been for nothing: spin less before the next sleep
}

bool NodeCore::lead_until(Lock& lock, std::optional<TimePoint> deadline, const std::function<bool()>& done) {
    const auto late = [&deadline] { return deadline && Clock::now() >= *deadline; };
    while (!done()) {
        if (late()) return false;
        if (leading_) {
            if (deadline)
                changed_.wait_until(lock, *deadline);
            else
                changed_.wait(lock);
            continue;
        }
        leading_ = true;
        while (!done() && !late()) lead_step(lock, deadline);
        leading_ = false;
        changed_.notify_all();
    }
    return true;
}

unsigned NodeCore::poll(std::chrono::milliseconds wait) {
    Hold hold(*this);
    if (leading_) return 0;  // another thread does the work
    leading_ = true;
    unsigned handled = work(hold.lock());
    if (handled == 0 && wait.count() != 0) {
        std::optional<TimePoint> deadline;
        if (wait.count() > 0) deadline = Clock::now() + wait;
        woken_ = false;
        while (handled == 0 && !woken_ && (!deadline || Clock::now() < *deadline))
            handled = lead_step(hold.lock(), deadline);
    }
    leading_ = false;
    changed_.notify_all();
    return handled;
}

void NodeCore::wake() noexcept {
    woken_ = true;
    sleeper_.kick();
}

bool NodeCore::wait(CallTable::Id id, std::optional<TimePoint> deadline) {
    Hold hold(*this);
    ++lead_wanted_;
    wake_leader();
    const bool ended = lead_until(hold.lock(), deadline, [this, id] {
        const CallSlot* slot = calls_.find(id.slot, id.generation);
        return slot == nullptr || slot->state == CallSlot::State::ended;
    });
    --lead_wanted_;
    changed_.notify_all();
    return ended;
}

// The node's own thread leads whenever nobody who waits for a call wants to.
void NodeCore::serve_own_thread() {
    Hold hold(*this);
    while (!stopping_) {
        if (leading_ || lead_wanted_ > 0) {
            changed_.wait(hold.lock());
            continue;
        }
        leading_ = true;
        while (!stopping_ && lead_wanted_ == 0) lead_step(hold.lock(), std::nullopt);
        leading_ = false;
        changed_.notify_all();
    }
}

void NodeCore::wake_leader() {
    if (asleep_) sleeper_.kick();
}

void NodeCore::call_ended() {
    changed_.notify_all();
}

// What it changes counts as handled: somebody may wait for it, and must not sleep over it.
unsigned NodeCore::housekeep(Lock& lock) {
    unsigned changed = 0;
    const TimePoint now = Clock::now();
    const auto expire = [now, &changed](std::optional<Parked>& parked) {
        if (!parked || parked->hopeless || !parked->asked || now - parked->since <= kCodeWaitMax) return;
        parked->hopeless =
            Error(ErrorCode::timed_out, "its code did not come in time; is the process that has it stopped?");
        ++changed;
    };
    expire(local_parked_);
    for (std::size_t i = 0; i < peers_.size();) {
        PeerState& peer = *peers_[i];
        expire(peer.parked);
        if (peer.lost && peer.link) {
            (void)serve(peer, lock);  // what it sent before it went still counts
            clean_up(peer);
            ++changed;
        }
        // A client that comes back is a new one; any other peer has an address and can be reached again.
        if (!peer.link && is_client(peer.id))
            peers_.erase(peers_.begin() + static_cast<std::ptrdiff_t>(i));
        else
            ++i;
    }
    return changed;
}

void NodeCore::shut_down() {
    if (control_) control_->stop_accepting();
    {
        Hold hold(*this);
        stopping_ = true;
        wake_leader();
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    {
        Hold hold(*this);
        if (fabric_ && !leading_) {
            // What has arrived is run and answered; what arrives from now on may find nobody.
            const TimePoint limit = Clock::now() + std::chrono::seconds(1);
            leading_ = true;
            for (unsigned quiet = 0; quiet < 100 && Clock::now() < limit;)
                quiet = work(hold.lock()) > 0 ? 0 : quiet + 1;
            leading_ = false;
        }
        calls_.fail_all(nullptr, Error(ErrorCode::cancelled, "this node was shut down while the call was in flight"));
        changed_.notify_all();
    }
    if (control_) control_->stop();
    Hold hold(*this);
    for (const auto& peer : peers_) peer->forget_meeting();
}

}  // namespace rove
