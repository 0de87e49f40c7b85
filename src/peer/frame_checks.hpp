// FrameChecks: which frames a peer may send. Each frame that is not plain is checked here first; wire/kinds.hpp checks its shape.
//
// Threads: under the engine's lock. No state: what it answers depends on the frame and on who the peer is.
#pragma once

#include <optional>
#include <string_view>

#include "lead/engine_lock.hpp"
#include "peer/peer_state.hpp"
#include "peer/routes.hpp"
#include "wire/kinds.hpp"

namespace rove {

class FrameChecks {
public:
    FrameChecks(const NodeOptions& options, const Routes& routes) : options_(options), routes_(routes) {}

    // Whether it was made by the peer itself and is a call by handle without flags, as nearly all frames are, or a ping. wrong_with() need not
    // check it.
    [[nodiscard]] static bool is_plain(const PeerState& from, const wire::Frame& frame) REQUIRES(lock_of<EngineLock>) {
        const std::uint32_t features = from.identity().features;
        return (wire::is_plain<wire::Kind::call>(frame, features) ||
                wire::is_plain<wire::Kind::ping>(frame, features)) &&
               frame.header.node == from.id();
    }
    // The error of a frame from this peer, if it has one: in its shape, or because this peer may not send it. Peers send frames in their own
    // name; members also in the name of callers whose calls they send on, and of the nodes that answer these.
    [[nodiscard]] std::optional<Error> wrong_with(const PeerState& from, const wire::Frame& frame,
                                                  fabric::Traffic among) const REQUIRES(lock_of<EngineLock>) {
        const std::string_view fault = fault_of(from, frame, among);
        if (fault.empty()) return std::nullopt;
        return error_of(from, frame, fault);
    }

private:
    // What is wrong with the frame, as the end of a sentence; "" if nothing is. The error is made elsewhere: hardly any frame has one, and the
    // first call of each function, and its bind, are checked here.
    [[nodiscard]] std::string_view fault_of(const PeerState& from, const wire::Frame& frame,
                                            fabric::Traffic among) const REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] static Error error_of(const PeerState& from, const wire::Frame& frame, std::string_view fault)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool takes_code(const PeerState& from) const REQUIRES(lock_of<EngineLock>);

    const NodeOptions& options_;
    const Routes& routes_;
};

}  // namespace rove
