// SharedState: what is one for a whole node, however many engines serve it, and what their parts use of it.
//
// Threads: any. Each of these has a lock of its own. It is taken under an engine's lock or under none, and nothing else is asked under it: no
// engine's lock, and none of the others. A call from one node to another takes none of them once both know its function.
#pragma once

#include <array>

#include "peer/absent_members.hpp"
#include "peer/between_engines.hpp"
#include "peer/complaints.hpp"
#include "peer/node_ids.hpp"
#include "peer/own_functions.hpp"
#include "peer/peer_places.hpp"
#include "services/memory.hpp"

namespace rove {

struct SharedState {
    SharedState(unsigned engines, std::size_t buffer_bytes_max) : between(engines), memory(buffer_bytes_max) {}

    NodeIds ids;
    BetweenEngines between;
    Complaints complaints;  // of peers
    AbsentMembers absent;   // members without a link
    PeerPlaces places;
    OwnFunctions own_functions;
    MemoryTable memory;
    const std::array<Service*, 1> services{&memory};
};

}  // namespace rove
