// FrameChecks: what a peer may say, the first look at each frame that is not plain. Its shape is checked by wire/kinds.hpp.
//
// Threads: under the engine's lock.
#pragma once

#include <optional>

#include "lead/engine_lock.hpp"
#include "peer/peer_state.hpp"
#include "peer/routes.hpp"
#include "wire/kinds.hpp"

namespace rove {

class FrameChecks {
public:
    FrameChecks(const NodeOptions& options, const Routes& routes) : options_(options), routes_(routes) {}

    // What nearly all calls are: by handle, without marks, and made by who sends it. wrong_with() need not look at it.
    [[nodiscard]] static bool is_plain_call(const PeerState& from, const wire::Frame& frame)
        REQUIRES(lock_of<EngineLock>) {
        return wire::is_plain<wire::Kind::call>(frame) && frame.header.node == from.id;
    }
    // What is wrong with a frame from this peer, if anything: its shape, and whether this peer may say it. Peers speak for themselves;
    // members also for the callers of calls that they send on, and for those that answer them.
    [[nodiscard]] std::optional<Error> wrong_with(const PeerState& from, const wire::Frame& frame,
                                                  fabric::Traffic among) const REQUIRES(lock_of<EngineLock>);

private:
    [[nodiscard]] bool takes_code(const PeerState& from) const REQUIRES(lock_of<EngineLock>);

    const NodeOptions& options_;
    const Routes& routes_;
};

}  // namespace rove
