#include "peer/peer_state.hpp"

#include "peer/warm_peers.hpp"

namespace rove {
namespace {

void require(bool precondition) {
    if (!precondition) std::abort();
}

}  // namespace

Peer::Counters PeerState::all_counters() const {
    Peer::Counters sum = counters_;
    if (!link_) return sum;
    const fabric::Link::Counters& now = link_->counters();
    sum.frames_sent += now.frames_sent;
    sum.bytes_sent += now.bytes_sent;
    sum.frames_received += now.frames_received;
    return sum;
}

void PeerState::meet(PeerIdentity as, NodeId back, std::shared_ptr<fabric::Link> link, std::uint64_t number,
                     HangUp hang_up) {
    require(!link_ && link != nullptr && number != 0);
    if (as.address.empty()) as.address = std::move(identity_.address);
    identity_ = std::move(as);
    has_residents_.store(identity_.has_residents, std::memory_order_relaxed);
    back_ = back;
    lane_ = link->lane();
    link_ = std::move(link);
    link_->set_holder(this);
    frames_at_look_ = 0;
    hang_up_ = std::move(hang_up);
    meeting_.store(number, std::memory_order_relaxed);
}

void PeerState::lose(Error why) {
    require(link_ != nullptr);
    if (!lost_) lost_ = std::move(why);
    link_->warm();
}

bool PeerState::awaits_goodbye(TimePoint now) {
    if (lost_ || !link_ || !link_->has_ended()) return false;
    if (!broken_since_) broken_since_ = now;
    return now < goodbye_until();
}

void PeerState::begin_end() {
    require(link_ != nullptr);
    if (!lost_) {
        const Error* const broken = link_->broken();
        lost_ = Error(ErrorCode::disconnected, broken != nullptr ? broken->message() : "the link broke");
    }
    gone_ = lost_->message();
}

void PeerState::hang_up(const Error& why) {
    if (!hang_up_) return;
    hang_up_(why);
    hang_up_ = nullptr;
}

// Called by WarmPeers::take_warmed().
void PeerState::link_warmed() noexcept {
    engine_lock_is_held();
    if (warm_peers_ != nullptr) warm_peers_->add(*this);
}

std::shared_ptr<fabric::Link> PeerState::end_meeting(DroppedBytes& dropped) {
    counters_ = all_counters();
    std::shared_ptr<fabric::Link> ended = std::exchange(link_, nullptr);
    if (ended) ended->set_holder(nullptr);
    meeting_.store(0, std::memory_order_relaxed);
    lost_.reset();
    broken_since_.reset();
    left_as_member_.reset();
    hang_up_ = nullptr;
    for (Outbox& each : outbox_) each.drop(dropped);
    code.forget(dropped);
    calls.forget();
    sends.forget();
    return ended;
}

}  // namespace rove
