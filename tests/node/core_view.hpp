// What tests see of a node from within, under its lock.
#pragma once

#include "node/core.hpp"

namespace rove {

struct CoreView {
    static unsigned quiet_runs(NodeCore& core) {
        const NodeCore::Hold hold(core);
        return core.quiet_runs_.threads();
    }
    // Of payloads that are arriving in parts.
    static std::size_t staged_bytes(NodeCore& core) {
        const NodeCore::Hold hold(core);
        return core.staged_bytes_;
    }
    // Whether a thread leads, and how many others wait; how many of these are quiet.
    static bool has_lead(NodeCore& core, int waiting, int quiet) {
        const NodeCore::Hold hold(core);
        return core.baton_.leading_ && core.baton_.waiting_ == waiting && core.baton_.quiet_ == quiet;
    }
};

}  // namespace rove
