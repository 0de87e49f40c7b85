#include "fabric/loopback/loopback.hpp"

#include <sodium.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rove::fabric {

Result<std::shared_ptr<Bell>> Bell::open() {
    const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (descriptor < 0)
        return fail(ErrorCode::overloaded, "no event descriptor for a fabric ({}); raise the limit (ulimit -n)",
                    strerror(errno));
    return std::make_shared<Bell>(descriptor);
}

Bell::~Bell() {
    close(descriptor_);
}

void Bell::ring() noexcept {
    const std::uint64_t one = 1;
    (void)!write(descriptor_, &one, sizeof one);
}

bool Bell::take() noexcept {
    std::uint64_t rings = 0;
    return read(descriptor_, &rings, sizeof rings) == sizeof rings;
}

std::uint64_t Exchange::add(std::shared_ptr<Landing> landing) {
    const MutexLock lock(mutex_);
    landings_[++last_] = std::move(landing);
    return last_;
}

std::shared_ptr<Landing> Exchange::find(std::uint64_t id) {
    const MutexLock lock(mutex_);
    const auto found = landings_.find(id);
    return found != landings_.end() ? found->second : nullptr;
}

void Exchange::remove(std::uint64_t id) {
    const MutexLock lock(mutex_);
    landings_.erase(id);
}

LoopbackLink::LoopbackLink(std::shared_ptr<Exchange> exchange, std::shared_ptr<BellAndBoard> bell_and_board,
                           Board& board, std::vector<LoopbackLink*>& links)
    : own_(std::make_shared<Landing>()), exchange_(std::move(exchange)), board_(board), links_(links) {
    own_->bell_and_board = std::move(bell_and_board);
    own_->place = board.give_place(*this).value();  // tests have fewer links
    randombytes_buf(&own_->region.owner, sizeof own_->region.owner);
    for (std::size_t i = 0; i < kTrafficKinds; ++i)
        incoming_[i] = RingReader(own_->region.rings[i], own_->region.owner);
    id_ = exchange_->add(own_);
    Writer offer;
    offer.number(id_);
    offer_ = offer.take();
    links_.push_back(this);
}

LoopbackLink::~LoopbackLink() {
    std::erase(links_, this);
    board_.take_back(own_->place);
    exchange_->remove(id_);
}

Status LoopbackLink::connect(Bytes peer_offer) {
    Reader in(peer_offer);
    const auto id = in.number<std::uint64_t>();
    if (!in.done()) return fail(ErrorCode::invalid, "a loopback offer of {} bytes", peer_offer.size());
    remote_ = exchange_->find(id);
    if (!remote_) return fail(ErrorCode::unsupported, "no loopback link {} in this process: was it closed?", id);
    for (std::size_t i = 0; i < kTrafficKinds; ++i)
        outgoing_[i] = RingWriter(remote_->region.rings[i], &own_->region.credits[i], remote_->region.owner);
    return {};
}

void LoopbackLink::transmit_credit(Traffic traffic) {
    const auto i = index_of(traffic);
    if (!remote_) return;
    // Partner: RingWriter::load_credit.
    std::atomic_ref(remote_->region.credits[i]).store(incoming_[i].given_back(), std::memory_order_release);
}

// A sender stores its signal and then accesses the flag; the sleeper accesses the flag and then checks the signals.
// Both access it by read-modify-write, so one of them is first: if it is the sender, the sleeper acquires its signal; if it is
// the sleeper, the sender sees the flag. (The thread sanitizer understands this, but not fences.)
void LoopbackLink::announce_sleep(bool asleep) {
    // Partner: peer_here_wants_wake.
    std::atomic_ref(own_->region.wanted).exchange(asleep ? Wanted::bell : Wanted::nothing, std::memory_order_acq_rel);
}

void LoopbackLink::announce_cold(bool cold) noexcept {
    // As above. A link may become warm while the leader sleeps: another thread sends by it.
    const Wanted warm = board_.announces_sleep() ? Wanted::bell : Wanted::nothing;
    std::atomic_ref(own_->region.wanted).exchange(cold ? Wanted::bit : warm, std::memory_order_acq_rel);
}

void LoopbackLink::announce_again() noexcept {
    std::atomic_ref(own_->region.wanted).store(Wanted::bit, std::memory_order_seq_cst);
}

bool LoopbackLink::peer_here_wants_wake() const {
    if (!remote_) return false;
    // It writes what is there: only two accesses that both write are ordered. Partner: announce_sleep.
    Wanted nothing = Wanted::nothing;
    return !std::atomic_ref(remote_->region.wanted)
                .compare_exchange_strong(nothing, Wanted::nothing, std::memory_order_acq_rel);
}

void LoopbackLink::wake_peer() {
    const Wanted wanted = std::atomic_ref(remote_->region.wanted).exchange(Wanted::nothing, std::memory_order_acq_rel);
    BellAndBoard& there = *remote_->bell_and_board;
    if (PlaceOnBoard(there.board, remote_->place).give(wanted)) there.bell->ring();
}

Result<std::unique_ptr<Fabric>> LoopbackFabric::open(std::shared_ptr<Exchange> exchange) {
    ROVE_TRY(std::shared_ptr<Bell> bell, Bell::open());
    return std::unique_ptr<Fabric>(new LoopbackFabric(std::move(exchange), std::move(bell)));
}

Result<std::unique_ptr<Link>> LoopbackFabric::open_link() {
    return std::make_unique<LoopbackLink>(exchange_, bell_and_board_, own_board_, links_);
}

bool LoopbackFabric::announce_sleep() {
    for (LoopbackLink* link : links_)
        if (!link->is_cold()) link->announce_sleep(true);
    own_board_.announce_sleep(true);
    return true;
}

void LoopbackFabric::end_sleep() {
    for (LoopbackLink* link : links_)
        if (!link->is_cold()) link->announce_sleep(false);
    own_board_.announce_sleep(false);
}

}  // namespace rove::fabric
