// What tests see of a node from within, under its lock.
#pragma once

#include "node/core.hpp"

namespace rove {

struct CoreView {
    static unsigned quiet_runs(NodeCore& core) {
        const NodeCore::Hold hold(core);
        return core.own_threads_.quiet().threads();
    }
    // Of payloads that are arriving in parts.
    static std::size_t staged_bytes(NodeCore& core) {
        const NodeCore::Hold hold(core);
        return core.payload_parts_.bytes();
    }
    // How many of so many waits would let nothing more run on top of them, and how many threads are made for that.
    static std::pair<unsigned, std::size_t> unnested_waits(NodeCore& core, unsigned waits) {
        const NodeCore::Hold hold(core);
        const std::size_t threads = core.own_threads_.made();
        unsigned unnested = 0;
        for (unsigned i = 0; i < waits; ++i) unnested += core.own_threads_.stop_nesting() ? 1 : 0;
        core.own_threads_.nest_again(unnested);
        return {unnested, core.own_threads_.made() - threads};
    }
    // As a function waits for room that comes between two looks.
    static void wait_for_what_comes_at_once(NodeCore& core) {
        NodeCore::Hold hold(core);
        int looks = 0;
        (void)core.runner_.wait_until(hold.lock(), std::nullopt, [&looks] { return ++looks > 1; });
    }
    // Threads that wait until they may send.
    static std::size_t waits_for_room(NodeCore& core) {
        const NodeCore::Hold hold(core);
        return core.rooms_.count();
    }
    // Whether a thread leads, and how many others wait; how many of these are quiet.
    static bool has_lead(NodeCore& core, int waiting, int quiet) {
        const NodeCore::Hold hold(core);
        const Baton& baton = core.lead_.baton_;
        return baton.leading_ && baton.waiting_ == waiting && baton.quiet_ == quiet;
    }
};

}  // namespace rove
