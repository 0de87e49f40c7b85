#include "peer/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rove {

void CallSlot::end(Bytes data) {
    const bool large = data.size() > small_.size();
    if (large) large_.assign(data.begin(), data.end());  // what may fail is done first
    state = State::ended;
    if (so_far_.arrived() > 0) {  // parts came, and then a whole: that counts
        parts_ = {};
        in_sink_ = false;
    }
    if (large) return;
    small_bytes_ = static_cast<std::uint32_t>(data.size());
    if (!data.empty()) std::memcpy(small_.data(), data.data(), data.size());
}

void CallSlot::end(Error error) {
    state = State::ended;
    error_ = std::move(error);
}

void CallSlot::end_reassembled() {
    if (so_far_.is_whole() && so_far_.arrived() > 0)
        state = State::ended;
    else
        end(Error(ErrorCode::internal, "the result's parts did not come"));
}

CallEnd CallSlot::take() {
    ByteBuffer data =
        large_.empty() ? ByteBuffer(small_.data(), small_.data() + small_bytes_) : std::exchange(large_, {});
    return {std::move(data), std::move(parts_), node, ran, hops};
}

void CallTable::grow() {
    const std::size_t first = chunks_.size() * kChunk;
    const std::size_t slots = first + kChunk;
    if (free_.capacity() < slots) free_.reserve(std::max(slots, 2 * first));  // what may fail is done first
    chunks_.push_back(std::make_unique<Chunk>());
    for (std::size_t i = kChunk; i > 0; --i) {
        slot(first + i - 1).generation = generations_.first;
        slot(first + i - 1).index = static_cast<std::uint16_t>(first + i - 1);
        free_.push_back(static_cast<std::uint16_t>(first + i - 1));
    }
}

Result<CallId> CallTable::begin(PeerState* peer) {
    if (closed_) return fail(ErrorCode::cancelled, "the node was shut down");
    if (free_.empty()) {
        if (chunks_.size() * kChunk == kCallsMax)
            return fail(ErrorCode::overloaded,
                        "{} calls of this node's own are in flight, the most it has at once; wait for some to end",
                        kCallsMax);
        try {
            grow();
        } catch (const std::bad_alloc&) {
            return fail(ErrorCode::overloaded, "no memory for one more call");
        }
    }
    const std::uint16_t index = free_.back();
    free_.pop_back();
    CallSlot& begun = slot(index);
    begun.state = CallSlot::State::flying;
    begun.peer = peer;
    return CallId{index, begun.generation};
}

void CallTable::add_to_tell(CallSlot& slot) {
    if (std::exchange(slot.is_to_be_told_, true)) return;
    if (to_tell_++ == 0) {
        first_to_tell_ = slot.index;
    } else {
        this->slot(last_to_tell_).told_after_ = slot.index;
        slot.told_before_ = last_to_tell_;
    }
    last_to_tell_ = slot.index;
}

CallSlot& CallTable::take_to_tell() {
    CallSlot& first = slot(first_to_tell_);
    take_out(first);
    return first;
}

void CallTable::take_out(CallSlot& told) {
    told.is_to_be_told_ = false;
    --to_tell_;
    const bool is_first = told.index == first_to_tell_, is_last = told.index == last_to_tell_;
    if (is_first) first_to_tell_ = told.told_after_;
    if (is_last) last_to_tell_ = told.told_before_;
    if (is_first || is_last) return;
    slot(told.told_before_).told_after_ = told.told_after_;
    slot(told.told_after_).told_before_ = told.told_before_;
}

// Frees what only some calls use.
[[gnu::noinline]] void CallTable::release_rest(CallSlot& slot) {
    if (slot.is_to_be_told_) take_out(slot);
    reassembled_bytes_ -= std::exchange(slot.room_, 0);
    slot.so_far_ = InParts(0);
    slot.parts_ = {};
    slot.in_sink_ = false;
    if (std::exchange(slot.timed_, false)) timers_.erase(slot.timer_);
    slot.large_ = ByteBuffer();  // not {}, which would keep its memory
    slot.error_.reset();
}

void CallTable::release(CallSlot& slot) {
    if (slot.state == CallSlot::State::free) return;
    const bool came_in_parts = slot.so_far_.total() > 0 || slot.in_sink_;
    if (slot.is_to_be_told_ || slot.room_ > 0 || came_in_parts || slot.timed_ || !slot.large_.empty() || slot.error_)
        release_rest(slot);
    slot.state = CallSlot::State::free;
    slot.generation += generations_.step;
    slot.small_bytes_ = 0;
    slot.sink = nullptr;
    slot.not_shipped = nullptr;
    slot.notify = {};
    slot.brings_memory = false;
    free_.push_back(slot.index);
}

CallTable::Reassembled CallTable::reassemble(CallSlot& slot, std::size_t offset, std::size_t total, Bytes part) {
    // From its beginning once more, after the link that the first parts came by was cut.
    const bool again = offset == 0 && slot.so_far_.arrived() > 0 && slot.so_far_.total() == total;
    if (again && slot.in_sink_) {
        slot.end(Error(ErrorCode::disconnected, "the link was cut while the result came in parts; the function ran"));
        return Reassembled::ended;
    }
    InParts so_far = again || slot.so_far_.arrived() == 0 ? InParts(total) : slot.so_far_;
    if (part.empty() || !so_far.take(offset, total, part.size())) return Reassembled::wrong;
    if (offset == 0 && !again) {
        if (const Reassembled begun = begin(slot, total); begun != Reassembled::taken) return begun;
    }
    if (slot.in_sink_) {
        if (const Reassembled given = give_to_sink(slot, total, part); given != Reassembled::taken) return given;
    } else {
        std::memcpy(slot.parts_.data() + offset, part.data(), part.size());
    }
    slot.so_far_ = so_far;
    return Reassembled::taken;
}

CallTable::Reassembled CallTable::give_to_sink(CallSlot& slot, std::size_t total, Bytes part) {
    using enum ResultSink::Took;
    const auto took = slot.sink != nullptr ? slot.sink->take(slot.sink->self, part, total) : refused;
    if (took == accepted) return Reassembled::taken;
    slot.end(took == no_memory
                 ? Error(ErrorCode::failed, fmt::format("it ran; no memory here for its result of {} bytes", total))
                 : Error(ErrorCode::invalid, "the result is no value of the type that the caller takes"));
    return Reassembled::ended;
}

Error CallTable::no_room_for(std::size_t total) const {
    return {
        ErrorCode::failed,
        fmt::format(
            "it ran; no room for the result of {} bytes: results of other calls hold {} bytes here, and all may hold "
            "{}; get or drop those calls before more are made",
            total, reassembled_bytes_, reassembled_bytes_max_)};
}

void CallTable::end(CallSlot& slot, Bytes data) {
    reassembled_bytes_ -= std::exchange(slot.room_, 0);             // parts of it that had arrived before
    if (data.size() > kSmallResultBytes && slot.sink == nullptr) {  // or somebody waits for it, and takes it now
        if (data.size() > reassembled_bytes_max_ - reassembled_bytes_) return slot.end(no_room_for(data.size()));
        reassembled_bytes_ += slot.room_ = data.size();
    }
    slot.end(data);
}

// Chooses the place for the result: with the thread that waits for it, or in memory of the table's.
CallTable::Reassembled CallTable::begin(CallSlot& slot, std::size_t total) {
    slot.in_sink_ = slot.sink != nullptr;
    if (slot.in_sink_) return Reassembled::taken;
    if (SpareMemory::room_for(total) > reassembled_bytes_max_ - reassembled_bytes_) {
        slot.end(no_room_for(total));
        return Reassembled::ended;
    }
    Result<LargeBytes> place = memory_->take(total);
    if (!place) {
        slot.end(place.error());
        return Reassembled::ended;
    }
    slot.parts_ = std::move(*place);
    reassembled_bytes_ += slot.room_ = slot.parts_.room();
    return Reassembled::taken;
}

void CallTable::limit(CallId id, TimePoint deadline) {
    CallSlot* limited = flying(id);
    if (limited == nullptr || (limited->timed_ && limited->timer_->first <= deadline)) return;  // the earlier one holds
    const auto timer = timers_.emplace(deadline, id);  // what may fail is done first
    if (limited->timed_) timers_.erase(limited->timer_);
    limited->timed_ = true;
    limited->timer_ = timer;
}

}  // namespace rove
