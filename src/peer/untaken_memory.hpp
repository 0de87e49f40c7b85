// UntakenMemory: calls that allocate memory on other nodes and that nobody waits for any more. Their answers still arrive, and name memory that
// nobody would free.
//
// Threads: under the engine's lock. Invariant: at most kMax calls, each listed until its answer has arrived or its link has ended.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "peer/calls.hpp"

namespace rove {

class UntakenMemory {
public:
    // As many as there may be calls. Memory beyond these stays allocated on its node until this node leaves it.
    static constexpr std::size_t kMax = kCallsMax;

    void expect(CallId id, const PeerState* from) {
        if (calls_.size() < kMax) calls_.insert_or_assign({id.slot, id.generation}, from);
    }
    // The answer has arrived. False: it is not expected from there.
    [[nodiscard]] bool take(CallId id, const PeerState* from) {
        const auto call = calls_.find({id.slot, id.generation});
        if (call == calls_.end() || call->second != from) return false;
        calls_.erase(call);
        return true;
    }
    // The link has ended, and the memory with it.
    void forget(const PeerState* from) {
        std::erase_if(calls_, [from](const auto& call) { return call.second == from; });
    }

private:
    std::map<std::pair<std::uint16_t, std::uint32_t>, const PeerState*> calls_;
};

}  // namespace rove
