// The calls this node has in flight. A slot is found by index; its generation tells a late reply from a live one.
//
// Threads: under the node's lock.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "code/cache.hpp"

namespace rove {

struct PeerState;

// Calls in flight at once, per node. At 128 bytes a slot, 8 MiB.
inline constexpr std::size_t kCallsMax = 65536;

struct CallEnd {
    Buffer data;
    NodeId node = kNoNode;
    code::Ran ran = code::Ran::image;
    std::uint8_t hops = 0;
};

struct CallSlot {
    enum class State : std::uint8_t { free, flying, ended };
    State state = State::free;
    std::uint32_t generation = 0;
    PeerState* peer = nullptr;  // whom it was sent to
    CallEnd end;
    std::optional<Error> error;
};

class CallTable {
public:
    explicit CallTable(std::uint32_t first_generation) : first_generation_(first_generation) {}

    struct Id {
        std::uint32_t slot;
        std::uint32_t generation;
    };
    [[nodiscard]] Result<Id> begin(PeerState* peer);  // overloaded: kCallsMax in flight
    // The flying slot a reply belongs to, or null: ended, or of an older generation.
    [[nodiscard]] CallSlot* flying(std::uint32_t slot, std::uint32_t generation);
    [[nodiscard]] CallSlot* find(std::uint32_t slot, std::uint32_t generation);
    void release(std::uint32_t slot, std::uint32_t generation);
    // Fails what flies to one peer (null: to any).
    void fail_all(const PeerState* peer, const Error& why);

private:
    std::uint32_t
        first_generation_;  // random, so that a reply meant for an earlier process on this address finds nothing
    std::deque<CallSlot> slots_;
    std::vector<std::uint32_t> free_;
};

}  // namespace rove
