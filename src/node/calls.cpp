#include "node/calls.hpp"

namespace rove {

Result<CallTable::Id> CallTable::begin(PeerState* peer) {
    if (free_.empty()) {
        if (slots_.size() == kCallsMax)
            return fail(ErrorCode::overloaded,
                        "{} calls are in flight, the most a node has at once; wait for some to end", kCallsMax);
        slots_.emplace_back().generation = first_generation_;
        free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    CallSlot& slot = slots_[index];
    slot.state = CallSlot::State::flying;
    slot.peer = peer;
    return Id{index, slot.generation};
}

CallSlot* CallTable::find(std::uint32_t slot, std::uint32_t generation) {
    if (slot >= slots_.size() || slots_[slot].generation != generation) return nullptr;
    return &slots_[slot];
}

CallSlot* CallTable::flying(std::uint32_t slot, std::uint32_t generation) {
    CallSlot* found = find(slot, generation);
    return found != nullptr && found->state == CallSlot::State::flying ? found : nullptr;
}

void CallTable::release(std::uint32_t slot, std::uint32_t generation) {
    CallSlot* found = find(slot, generation);
    if (found == nullptr) return;
    *found = CallSlot{.generation = generation + 1};
    free_.push_back(slot);
}

void CallTable::fail_all(const PeerState* peer, const Error& why) {
    for (CallSlot& slot : slots_) {
        if (slot.state != CallSlot::State::flying || (peer != nullptr && slot.peer != peer)) continue;
        slot.state = CallSlot::State::ended;
        slot.error = why;
    }
}

}  // namespace rove
