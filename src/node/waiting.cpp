// What a caller does with a call in flight: it waits for its end, limits or cancels it, or has somebody told. And poll(), for programs
// that serve and wait by themselves.
#include "node/core.hpp"
#include "node/lead_until.hpp"

namespace rove {

bool NodeCore::wait_for(Lock& lock, CallTable::Id id, std::optional<TimePoint> deadline) {
    return lead_until(lock, deadline, [this, id]() REQUIRES(lock_of<NodeLock>) { return has_ended(id); });
}

bool NodeCore::wait(CallTable::Id id, std::optional<TimePoint> deadline) {
    Hold hold(*this);
    return wait_for(hold.lock(), id, deadline);
}

std::optional<std::size_t> NodeCore::wait_any(std::span<const CallTable::Id> ids, std::optional<TimePoint> deadline) {
    Hold hold(*this);
    std::optional<std::size_t> ended;
    (void)lead_until(hold.lock(), deadline, [&]() REQUIRES(lock_of<NodeLock>) {
        for (std::size_t i = 0; i < ids.size() && !ended; ++i)
            if (has_ended(ids[i])) ended = i;
        return ended.has_value();
    });
    return ended;
}

void NodeCore::drive(const std::function<bool()>& done, std::optional<TimePoint> deadline) {
    Hold hold(*this);
    (void)lead_until(hold.lock(), deadline, done);
}

void NodeCore::cancel(CallTable::Id id) {
    Hold hold(*this);
    CallSlot* slot = calls_.flying(id);
    if (slot == nullptr) return;
    slot->end(Error(ErrorCode::cancelled, "the call was cancelled; it may have run"));
    call_ended(*slot);
    if (!ready_.empty()) lead_.wake();
}

void NodeCore::limit(CallTable::Id id, TimePoint deadline) {
    Hold hold(*this);
    limit_sent(id, deadline);
}

bool NodeCore::notify(CallTable::Id id, void (*notify)(void*), void* argument) {
    Hold hold(*this);
    CallSlot* slot = notify != nullptr ? calls_.flying(id) : calls_.find(id);
    if (slot == nullptr) return false;
    const bool asked = std::exchange(slot->notify, notify) != nullptr;
    slot->notify_argument = argument;
    return notify != nullptr || asked;
}

unsigned NodeCore::poll(std::chrono::milliseconds wait) {
    Hold hold(*this);
    std::optional<TimePoint> deadline;
    if (wait.count() > 0) deadline = deadline_of(detail::ns_of(wait));
    if (lead_.is_led()) {
        if (wait.count() == 0 || in_user_code_.core == this) return 0;  // who is in a function may lead himself
        if (!lead_.wait_while_led(hold.lock(), deadline)) return 0;
    }
    const unsigned beneath = in_user_code_.core == this ? 1 : 0;
    Lead::Turn turn{.lock = hold.lock(), .baton = {.own = false, .quiet = no_nesting_ > 0 || is_deep()}};
    nested_ += beneath;
    lead_.take(turn);
    unsigned handled = work(turn);
    if (handled == 0 && wait.count() != 0) {
        while (handled == 0 && !lead_.was_interrupted() && !lead_.lost(turn) && (!deadline || Clock::now() < *deadline))
            handled = lead_.step(turn, deadline);
    }
    if (!lead_.lost(turn)) lead_.give(turn);
    nested_ -= beneath;
    return handled;
}

void NodeCore::wake() noexcept {
    lead_.interrupt();
}

}  // namespace rove
