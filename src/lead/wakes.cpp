#include "lead/wakes.hpp"

namespace rove {

void Wakes::tell_all_of(Baton::Tell whom) {
    if (whom.waiting) changed_.notify_all();
    if (whom.follower) (waits_at_watch_ ? watch_ : followers_).notify_one();
    if (whom.sleeper) sleeper_.kick();
    if (whom.watch) watch_.notify_one();
    if (whom.standby) standing_by_.notify_all();
}

void Wakes::await_lead_or_leader(HeldLock& lock) {
    waits_at_watch_ = true;
    (void)await(watch_, lock, std::nullopt);
    waits_at_watch_ = false;
}

std::cv_status Wakes::await_change_or_leader(HeldLock& lock, Deadline deadline) {
    ++looking_;
    const std::cv_status how = await(changed_, lock, deadline);
    --looking_;
    return how;
}

std::cv_status Wakes::await(std::condition_variable_any& event, HeldLock& lock, const Deadline& deadline) {
    if (deadline) return event.wait_until(lock, *deadline);
    event.wait(lock);
    return std::cv_status::no_timeout;
}

}  // namespace rove
