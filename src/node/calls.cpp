#include "node/calls.hpp"

#include <fmt/format.h>

#include <utility>

namespace rove {

void CallSlot::end(Bytes data) {
    state = State::ended;
    if (gathered_ > 0) large_.clear();  // parts came, and then a whole: that counts
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

bool CallSlot::gather(std::size_t offset, std::size_t total, Bytes part) {
    if (offset == 0 && gathered_ == 0) large_.resize(total);
    if (offset != gathered_ || large_.size() != total || part.size() > total - offset || part.empty()) return false;
    std::memcpy(large_.data() + offset, part.data(), part.size());
    gathered_ += part.size();
    return true;
}

void CallSlot::end_gathered() {
    if (gathered_ == large_.size() && gathered_ > 0)
        state = State::ended;
    else
        end(Error(ErrorCode::internal, "the result's parts did not come"));
}

CallEnd CallSlot::take() {
    ByteBuffer data =
        large_.empty() ? ByteBuffer(small_.data(), small_.data() + small_bytes_) : std::exchange(large_, {});
    return {std::move(data), node, ran, hops};
}

void CallTable::grow() {
    const std::size_t first = chunks_.size() * kChunk;
    chunks_.push_back(std::make_unique<Chunk>());
    for (std::size_t i = kChunk; i > 0; --i) {
        slot(first + i - 1).generation = first_generation_;
        slot(first + i - 1).index = static_cast<std::uint16_t>(first + i - 1);
        free_.push_back(static_cast<std::uint16_t>(first + i - 1));
    }
}

Result<CallTable::Id> CallTable::begin(PeerState* peer) {
    if (closed_) return fail(ErrorCode::cancelled, "the node was shut down");
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
    if (std::exchange(found->gathered_, 0) > 0) gathered_bytes_ -= std::exchange(found->gathering_, 0);
    found->notify = nullptr;
    if (std::exchange(found->timed_, false)) timers_.erase(found->timer_);
    if (!found->large_.empty()) found->large_ = {};
    if (found->error_) found->error_.reset();
    free_.push_back(id.slot);
}

CallTable::Gathered CallTable::gather(CallSlot& slot, std::size_t offset, std::size_t total, Bytes part) {
    const bool first = slot.gathered_ == 0;
    if (first && (offset != 0 || part.empty() || part.size() > total)) return Gathered::wrong;
    if (first && total > gathered_bytes_max_ - gathered_bytes_) {
        slot.end(
            Error(ErrorCode::overloaded,
                  fmt::format("no room for the result of {} bytes: large results of other calls hold {} bytes here, "
                              "and all may hold {}; get or drop those calls before more are made",
                              total, gathered_bytes_, gathered_bytes_max_)));
        return Gathered::ended;
    }
    if (!slot.gather(offset, total, part)) return Gathered::wrong;
    if (first) gathered_bytes_ += slot.gathering_ = total;
    return Gathered::taken;
}

void CallTable::limit(Id id, TimePoint deadline) {
    CallSlot* limited = flying(id);
    if (limited == nullptr || limited->timed_) return;
    limited->timed_ = true;
    limited->timer_ = timers_.emplace(deadline, id);
}

}  // namespace rove
