// What a caller does with a call in flight: it waits for its end, limits or cancels it, or has somebody told.
#include "node/core.hpp"
#include "node/lead_until.hpp"

namespace rove {

bool NodeCore::wait_for(Lock& lock, CallTable::Id id, std::optional<TimePoint> deadline) {
    return lead_until(lock, deadline, [this, id] { return has_ended(id); }, {.limited = calls_.is_limited(id)});
}

bool NodeCore::wait(CallTable::Id id, std::optional<TimePoint> deadline) {
    Hold hold(*this);
    return wait_for(hold.lock(), id, deadline);
}

std::optional<std::size_t> NodeCore::wait_any(std::span<const CallTable::Id> ids, std::optional<TimePoint> deadline) {
    Hold hold(*this);
    std::optional<std::size_t> ended;
    (void)lead_until(hold.lock(), deadline, [&] {
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
    if (!ready_.empty()) wake_leader();
}

void NodeCore::limit(CallTable::Id id, TimePoint deadline) {
    Hold hold(*this);
    calls_.limit(id, deadline);
    wake_leader();  // it may be sleeping for longer
}

bool NodeCore::notify(CallTable::Id id, void (*notify)(void*), void* argument) {
    Hold hold(*this);
    CallSlot* slot = notify != nullptr ? calls_.flying(id) : calls_.find(id);
    if (slot == nullptr) return false;
    const bool asked = std::exchange(slot->notify, notify) != nullptr;
    slot->notify_argument = argument;
    return notify != nullptr || asked;
}

}  // namespace rove
