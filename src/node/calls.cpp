#include "node/calls.hpp"

#include <utility>

namespace rove {

void CallSlot::end(Bytes data) {
    state = State::ended;
    if (data.size() > small_.size()) {
        large_.assign(data.begin(), data.end());
        return;
    }
    small_bytes_ = static_cast<std::uint32_t>(data.size());
    if (!data.empty()) std::memcpy(small_.data(), data.data(), data.size());
}

void CallSlot::end(Error error) {
    state = State::ended;
    error_ = std::move(error);
}

CallEnd CallSlot::take() {
    Buffer data = large_.empty() ? Buffer(small_.data(), small_.data() + small_bytes_) : std::exchange(large_, {});
    return {std::move(data), node, ran, hops};
}

void CallTable::grow() {
    const std::size_t first = chunks_.size() * kChunk;
    chunks_.push_back(std::make_unique<Chunk>());
    for (std::size_t i = kChunk; i > 0; --i) {
        slot(first + i - 1).generation = first_generation_;
        free_.push_back(static_cast<std::uint16_t>(first + i - 1));
    }
}

Result<CallTable::Id> CallTable::begin(PeerState* peer) {
    if (free_.empty()) {
        if (chunks_.size() * kChunk == kCallsMax)
            return fail(ErrorCode::overloaded,
                        "{} calls are in flight, the most a node has at once; wait for some to end", kCallsMax);
        grow();
    }
    const std::uint16_t index = free_.back();
    free_.pop_back();
    CallSlot& begun = slot(index);
    begun.state = CallSlot::State::flying;
    begun.peer = peer;
    return Id{index, begun.generation};
}

CallSlot* CallTable::find(Id id) {
    if (id.slot >= chunks_.size() * kChunk) return nullptr;
    CallSlot& found = slot(id.slot);
    return found.generation == id.generation ? &found : nullptr;
}

CallSlot* CallTable::flying(Id id) {
    CallSlot* found = find(id);
    return found != nullptr && found->state == CallSlot::State::flying ? found : nullptr;
}

void CallTable::release(Id id) {
    CallSlot* found = find(id);
    if (found == nullptr || found->state == CallSlot::State::free) return;
    found->state = CallSlot::State::free;
    ++found->generation;
    found->small_bytes_ = 0;
    if (!found->large_.empty()) found->large_ = {};
    if (found->error_) found->error_.reset();
    free_.push_back(id.slot);
}

void CallTable::fail_all(const PeerState* peer, const Error& why) {
    for (const auto& chunk : chunks_)
        for (CallSlot& slot : *chunk)
            if (slot.state == CallSlot::State::flying && (peer == nullptr || slot.peer == peer)) slot.end(why);
}

}  // namespace rove
