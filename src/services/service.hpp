// Service: what a node does for its peers and keeps state for, besides running their calls. Its functions are built-ins (node/built_ins.hpp);
// this is what engines ask of it. SharedState lists the services of a node.
//
// Threads: any. Each service has a lock of its own. No state: this is an interface.
#pragma once

#include <span>

#include "rove/rove.h"

namespace rove {

class Service {
public:
    // The peer with that name (PeerState::back) is gone, and so is all that it had here. It is called under an engine's lock, so it takes the
    // same time however much that is, and leaves the rest to work(). Harmless the second time.
    virtual void peer_left(NodeId peer) = 0;
    // Whether work() has something to do.
    [[nodiscard]] virtual bool has_work() const = 0;
    // Does some of it, in a few milliseconds, by a thread that holds no lock for which others wait.
    virtual void work() = 0;

protected:
    Service() = default;
    Service(const Service&) = default;
    ~Service() = default;
};

using Services = std::span<Service* const>;

}  // namespace rove
