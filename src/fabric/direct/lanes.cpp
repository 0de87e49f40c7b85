#include "fabric/direct/lanes.hpp"

namespace rove::fabric {

Result<std::unique_ptr<DirectLanes>> DirectLanes::open() {
    ROVE_TRY(Doorbell bell, Doorbell::open());
    return std::unique_ptr<DirectLanes>(new DirectLanes(std::move(bell)));
}

Result<std::unique_ptr<Link>> DirectLanes::open_link() {
    ROVE_TRY(std::unique_ptr<DirectLink> link, DirectLink::open(*this));
    return std::unique_ptr<Link>(std::move(link));
}

// The order matters: bells of earlier sleeps are discarded before the flags are set. A bell that is rung for a flag set here
// stays in the pipe, so the sleeper that polls it wakes; a sender that has cleared a flag and not rung yet will still ring.
void DirectLanes::announce_sleep() {
    bell_.quiet();
    for (DirectLink* link : links_) link->announce_sleep(true);
    SleepFence::pay();
}

void DirectLanes::end_sleep() {
    for (DirectLink* link : links_) link->announce_sleep(false);
}

}  // namespace rove::fabric
