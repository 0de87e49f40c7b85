#include "fabric/direct/lanes.hpp"

namespace rove::fabric {

Result<std::unique_ptr<DirectLanes>> DirectLanes::open() {
    ROVE_TRY(Doorbell bell, Doorbell::open());
    ROVE_TRY(Shared<BoardMemory> board, make_shared_memory<BoardMemory>());
    return std::unique_ptr<DirectLanes>(new DirectLanes(std::move(bell), std::move(board)));
}

Result<std::unique_ptr<Link>> DirectLanes::open_link() {
    ROVE_TRY(std::unique_ptr<DirectLink> link, DirectLink::open(*this));
    return std::unique_ptr<Link>(std::move(link));
}

std::optional<std::uint32_t> DirectLanes::add(DirectLink& link) {
    if (warm_.capacity() < links_ + 1) warm_.reserve(2 * (links_ + 1));
    const std::optional<std::uint32_t> place = board_.give_place(link);
    if (!place) return {};
    ++links_;
    note_warm(link);
    return place;
}

void DirectLanes::remove(DirectLink& link, std::uint32_t place) noexcept {
    if (!link.is_cold()) note_cold(link);
    board_.take_back(place);
    --links_;
}

void DirectLanes::note_warm(DirectLink& link) noexcept {
    link.warm_at_ = warm_.size();
    warm_.push_back(&link);
}

void DirectLanes::note_cold(DirectLink& link) noexcept {
    warm_[link.warm_at_] = warm_.back();
    warm_[link.warm_at_]->warm_at_ = link.warm_at_;
    warm_.pop_back();
}

// The order matters: bells of earlier sleeps are discarded before the flags are set. A bell that is rung for a flag set here
// stays in the pipe, so the sleeper that polls it wakes; a sender that has cleared a flag and not rung yet will still ring.
void DirectLanes::announce_sleep() {
    bell_.drain();
    for (DirectLink* link : warm_) link->announce_sleep(true);
    board_.announce_sleep(true);
    SleepFence::pay();
}

void DirectLanes::end_sleep() {
    for (DirectLink* link : warm_) link->announce_sleep(false);
    board_.announce_sleep(false);
}

}  // namespace rove::fabric
