// State that the direct links of one fabric share: the doorbell, the fence, and the announcement that this process sleeps.
//
// Threads: as Fabric (fabric.hpp).
//
// Invariant: `links_` are the links that are open: each adds itself when it is opened and removes itself when it is destroyed.
#pragma once

#include <memory>
#include <vector>

#include "fabric/direct/doorbell.hpp"
#include "fabric/direct/link.hpp"
#include "fabric/direct/peers_bells.hpp"
#include "fabric/sleep_fence.hpp"

namespace rove::fabric {

class DirectLanes {
public:
    // unsupported: /proc is not mounted; overloaded: no more descriptors.
    [[nodiscard]] static Result<std::unique_ptr<DirectLanes>> open();

    [[nodiscard]] Result<std::unique_ptr<Link>> open_link();
    void announce_sleep();
    void end_sleep();

    // Used by the links.
    [[nodiscard]] const Doorbell& bell() const { return bell_; }
    [[nodiscard]] PeersBells& peers_bells() { return peers_bells_; }
    void add(DirectLink& link) { links_.push_back(&link); }
    void remove(DirectLink& link) { std::erase(links_, &link); }

private:
    explicit DirectLanes(Doorbell bell) : bell_(std::move(bell)) {}
    Doorbell bell_;
    PeersBells peers_bells_;
    SleepFence fence_;
    std::vector<DirectLink*> links_;
};

}  // namespace rove::fabric
