// SharedState: what is one for a whole node, however many engines serve it, and what their parts use of it.
//
// Threads: under the lock of the node's engine, as long as it has one engine; memory has a lock of its own.
#pragma once

#include "peer/absent_members.hpp"
#include "peer/complaints.hpp"
#include "peer/own_functions.hpp"
#include "peer/routes.hpp"
#include "services/memory.hpp"

namespace rove {

struct SharedState {
    explicit SharedState(std::size_t buffer_bytes_max) : memory(buffer_bytes_max) {}

    Routes routes;
    Complaints complaints GUARDED_BY(lock_of<EngineLock>);  // of peers
    AbsentMembers absent GUARDED_BY(lock_of<EngineLock>);   // members without a link
    OwnFunctions own_functions GUARDED_BY(lock_of<EngineLock>);
    MemoryTable memory;
};

}  // namespace rove
