// The calls this node has in flight. A slot is found by index; its generation tells a late reply from a live one.
//
// Threads: under the node's lock.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "code/cache.hpp"

namespace rove {

struct PeerState;

// Calls in flight at once, per node: what the slot's 16 bits in a frame can name. At 256 bytes a slot, 16 MiB.
inline constexpr std::size_t kCallsMax = 65536;
// Results up to this size are kept in the slot itself, so that a call with a small one allocates nothing.
inline constexpr std::size_t kSmallResultBytes = 64;

struct CallEnd {
    Buffer data;
    NodeId node = kNoNode;
    code::Ran ran = code::Ran::image;
    std::uint8_t hops = 0;
};

class CallSlot {
public:
    enum class State : std::uint8_t { free, flying, ended };

    void end(Bytes data);  // with a result
    void end(Error error);
    [[nodiscard]] Bytes data() const { return large_.empty() ? Bytes(small_).first(small_bytes_) : Bytes(large_); }
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }
    [[nodiscard]] CallEnd take();

    State state = State::free;
    code::Ran ran = code::Ran::image;  // of an ended call, as hops and node
    std::uint8_t hops = 0;
    NodeId node = kNoNode;
    std::uint32_t generation = 0;
    PeerState* peer = nullptr;  // whom it was sent to

private:
    friend class CallTable;
    std::uint32_t small_bytes_ = 0;
    std::array<std::byte, kSmallResultBytes> small_;
    Buffer large_;  // a result that is not small
    std::optional<Error> error_;
};

class CallTable {
public:
    explicit CallTable(std::uint32_t first_generation) : first_generation_(first_generation) {}

    struct Id {
        std::uint16_t slot;
        std::uint32_t generation;
    };
    [[nodiscard]] Result<Id> begin(PeerState* peer);  // overloaded: kCallsMax in flight
    // The flying slot a reply belongs to, or null: ended, or of an older generation.
    [[nodiscard]] CallSlot* flying(Id id);
    [[nodiscard]] CallSlot* find(Id id);
    void release(Id id);
    [[nodiscard]] std::size_t used() const { return chunks_.size() * kChunk - free_.size(); }
    // Fails what flies to one peer (null: to any).
    void fail_all(const PeerState* peer, const Error& why);

private:
    static constexpr std::size_t kChunk = 256;
    using Chunk = std::array<CallSlot, kChunk>;
    [[nodiscard]] CallSlot& slot(std::size_t index) { return (*chunks_[index / kChunk])[index % kChunk]; }
    void grow();

    std::uint32_t
        first_generation_;  // random, so that a reply meant for an earlier process on this address finds nothing
    std::vector<std::unique_ptr<Chunk>> chunks_;
    std::vector<std::uint16_t> free_;
};

}  // namespace rove
