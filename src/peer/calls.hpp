// CallTable: the calls that an engine has in flight. A slot is found by index; its generation distinguishes a late reply from a live one.
//
// Threads: under the engine's lock.
//
// Invariants: the address of a slot is constant. A slot is flying until its call ends, which happens once, and keeps the end until release();
// that changes the generation, so an id does not find a later call. `timers_` holds the slots whose `timed_` is set, the list of calls to be
// told those whose `is_to_be_told_` is; release() takes them out. `reassembled_bytes_` is the sum of the slots' `room_`, and within its bound.
#pragma once

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "code/cache.hpp"
#include "peer/in_parts.hpp"
#include "peer/spare_memory.hpp"
#include "wire/frame.hpp"

namespace rove {

class PeerState;
namespace detail {
struct Callable;
}

// Calls of one engine that are in flight at once: what the slot's 16 bits in a frame can name. At 336 bytes a slot, 21 MiB.
inline constexpr std::size_t kCallsMax = 65536;
// Results up to this size are kept in the slot itself, so that a call with a small one allocates nothing.
inline constexpr std::size_t kSmallResultBytes = 64;

// Results that arrived in parts and were not taken yet, all together: 32 of the largest. A call whose result exceeds it fails.
inline constexpr std::size_t kReassembledBytesMax = 32 * wire::kMessageBytesMax;

struct CallEnd {
    ByteBuffer data;
    LargeBytes large;  // in place of `data`, where the result came in parts
    NodeId node = kNoNode;
    RanAs ran = RanAs::image;
    std::uint8_t hops = 0;
};

// Takes the parts of a result in their order.
struct ResultSink {
    enum class Took : std::uint8_t {
        accepted,
        refused,    // it has no use for them: the call ends as invalid
        no_memory,  // the call ends as failed
    };
    Took (*take)(void* self, Bytes part, std::size_t total_bytes);
    void* self;
};

struct CallId {
    std::uint16_t slot;
    std::uint32_t generation;
};

class CallSlot {
public:
    enum class State : std::uint8_t { free, flying, ended };

    void end(Bytes data);  // with a result
    void end(Error error);
    void end_reassembled();  // with a result that came in parts
    [[nodiscard]] Bytes data() const {
        if (parts_.size() > 0) return parts_.bytes();
        return large_.empty() ? Bytes(small_).first(small_bytes_) : Bytes(large_);
    }
    // Whether the result went where `sink` says.
    [[nodiscard]] bool in_sink() const { return in_sink_; }
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }
    [[nodiscard]] CallEnd take();

    State state = State::free;
    RanAs ran = RanAs::image;  // of an ended call, as hops and node
    std::uint8_t hops = 0;
    std::uint16_t index = 0;  // in its table; constant
    NodeId node = kNoNode;
    std::uint32_t generation = 0;
    PeerState* peer = nullptr;  // to which it was sent
    // The function that is called once after the end, without the lock, in the thread that leads. It stays here until then, also after
    // the end, so that it can be withdrawn, or forgotten with the call.
    struct Notify {
        void (*function)(void*) = nullptr;
        void* argument = nullptr;
    };
    Notify notify{};
    // The place, at the thread that waits, for a result in parts of which none has arrived. It is called under the engine's lock.
    const ResultSink* sink = nullptr;
    // The function, if its code could not be sent: for the error if the peer lacks it. It lives as long as the program.
    const detail::Callable* not_shipped = nullptr;
    bool brings_memory = false;  // its result is the key of a new buffer, which nobody else knows
    [[nodiscard]] CallId id() const { return {index, generation}; }

private:
    friend class CallTable;
    friend struct CallSlotView;  // tests/node/call_table_test.cpp
    std::uint32_t small_bytes_ = 0;
    std::array<std::byte, kSmallResultBytes> small_;
    ByteBuffer large_;      // a result that is not small, and came whole
    LargeBytes parts_;      // one that came in parts
    InParts so_far_{0};     // of one that arrives in parts, from the first one on
    std::size_t room_ = 0;  // what it adds to CallTable::reassembled_bytes_
    bool in_sink_ = false;
    bool is_to_be_told_ = false;  // it is in CallTable's list of these …
    std::uint16_t told_before_ = 0,
                  told_after_ = 0;  // … between the slots with these indices, where it is not at an end of it
    std::optional<Error> error_;
    bool timed_ = false;
    std::multimap<TimePoint, CallId>::iterator timer_;  // where timed_
};

// The generations of the calls of one slot. The first is random, so that a reply meant for an earlier process on this address finds no call. The
// step is a power of two, and the remainder of a generation by it is the number of the engine (BetweenEngines::with_call).
struct Generations {
    Generations(std::uint32_t first_one, std::uint32_t step_between = 1) : first(first_one), step(step_between) {}
    std::uint32_t first, step;
};

class CallTable {
public:
    explicit CallTable(Generations generations, std::shared_ptr<SpareMemory> memory = std::make_shared<SpareMemory>(),
                       std::size_t reassembled_bytes_max = kReassembledBytesMax)
        : generations_(generations), memory_(std::move(memory)), reassembled_bytes_max_(reassembled_bytes_max) {}

    [[nodiscard]] Result<CallId> begin(PeerState* peer);  // overloaded: kCallsMax in flight
    // The flying slot a reply belongs to, or null: ended, or of an older generation.
    [[nodiscard, gnu::always_inline]] CallSlot* flying(CallId id) {
        CallSlot* const found = find(id);
        return found != nullptr && found->state == CallSlot::State::flying ? found : nullptr;
    }
    [[nodiscard]] CallSlot* find(CallId id) {
        if (id.slot >= chunks_.size() * kChunk) return nullptr;
        CallSlot& found = slot(id.slot);
        return found.generation == id.generation ? &found : nullptr;
    }
    void release(CallSlot& slot);
    void release(CallId id) {
        if (CallSlot* const found = find(id)) release(*found);
    }
    // No call begins any more: cancelled.
    void close() { closed_ = true; }
    [[nodiscard]] std::size_t used() const { return chunks_.size() * kChunk - free_.size(); }
    // Fails what flies to one peer (null: to any), and gives each slot to `ended`.
    template <typename Ended>
    void fail_all(const PeerState* peer, const Error& why, const Ended& ended) {
        for (const auto& chunk : chunks_)
            for (CallSlot& slot : *chunk)
                if (slot.state == CallSlot::State::flying && (peer == nullptr || slot.peer == peer)) {
                    slot.end(why);
                    ended(slot);
                }
    }

    // With a result that came whole. Where it would be kept, and there is no room for it, the call ends as failed: it has run.
    void end(CallSlot& slot, Bytes data);
    // The result of storing a part of a result.
    enum class Reassembled : std::uint8_t {
        taken,
        wrong,  // it is not the next one
        ended,  // there is no room for the result: its call has ended as failed
    };
    [[nodiscard]] Reassembled reassemble(CallSlot& slot, std::size_t offset, std::size_t total, Bytes part);

    // Calls that have ended and notify somebody, in the order of their ends. They are linked through their slots, because the end of a call
    // must need no memory. One that is released is taken out.
    void add_to_tell(CallSlot& slot);
    [[nodiscard]] bool has_to_tell() const { return to_tell_ > 0; }
    // Takes the first out. Precondition: there is one.
    [[nodiscard]] CallSlot& take_to_tell();

    // Calls that must end in time.
    void limit(CallId id, TimePoint deadline);
    [[nodiscard]] std::optional<TimePoint> first_deadline() const {
        return timers_.empty() ? std::nullopt : std::optional(timers_.begin()->first);
    }
    // The call that is late first, and that it no longer counts as one that will be. Precondition: there is a deadline.
    [[nodiscard]] CallId first() const { return timers_.begin()->second; }
    void drop_first() {
        slot(timers_.begin()->second.slot).timed_ = false;
        timers_.erase(timers_.begin());
    }

private:
    // 5 KiB: a client, of which a process may have many, has few calls in flight, and each node's first call makes one.
    static constexpr std::size_t kChunk = 16;
    using Chunk = std::array<CallSlot, kChunk>;
    [[nodiscard]] CallSlot& slot(std::size_t index) { return (*chunks_[index / kChunk])[index % kChunk]; }
    void grow();
    void take_out(CallSlot& told);
    void release_rest(CallSlot& slot);
    [[nodiscard]] Reassembled begin(CallSlot& slot, std::size_t total);
    [[nodiscard]] Error no_room_for(std::size_t total) const;
    [[nodiscard]] static Reassembled give_to_sink(CallSlot& slot, std::size_t total, Bytes part);

    Generations generations_;
    std::shared_ptr<SpareMemory> memory_;  // for results in parts
    std::size_t reassembled_bytes_max_;
    std::vector<std::unique_ptr<Chunk>> chunks_;
    std::vector<std::uint16_t> free_;
    std::multimap<TimePoint, CallId> timers_;
    std::size_t to_tell_ = 0;
    std::uint16_t first_to_tell_ = 0, last_to_tell_ = 0;  // where there are any
    bool closed_ = false;
    std::size_t reassembled_bytes_ = 0;  // room for results that came and are not small, or are coming in parts
};

}  // namespace rove
