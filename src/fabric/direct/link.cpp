#include "fabric/direct/link.hpp"

#include <sodium.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <new>

#include "base/boot_id.hpp"
#include "fabric/direct/lanes.hpp"
#include "fabric/region_file.hpp"

namespace rove::fabric {
namespace {

constexpr std::uint8_t kOfferVersion = 7;  // differs from every version of a UCX link's offer (ucx/link.cpp)

}  // namespace

Result<std::unique_ptr<DirectLink>> DirectLink::open(DirectLanes& lanes) {
    std::unique_ptr<DirectLink> link(new DirectLink(lanes));
    link->place_ = lanes.add(*link);
    if (!link->place_)
        return fail(
            ErrorCode::overloaded,
            "process {} has {} links by shared memory from one node, the most there may be; try again when some "
            "peers have left, or start both ends with --fabric tcp",
            getpid(), kBoardPlaces);
    ROVE_CHECK(link->make_region());
    return link;
}

DirectLink::~DirectLink() {
    (void)keep_pages();  // otherwise the mailboxes of links that have ended would stay for as long as a peer likes
    if (place_) lanes_.remove(*this, *place_);
}

Status DirectLink::make_region() {
    ROVE_TRY(Shared<Region> made, make_shared_memory<Region>());
    file_ = std::move(made.file);
    region_ = std::move(made.memory);
    randombytes_buf(&token_, sizeof token_);
    region_->owner = token_;
    for (std::size_t i = 0; i < kTrafficKinds; ++i) incoming_[i] = RingReader(region_->rings[i], token_);
    ROVE_TRY(const ProcFile mailbox, ProcFile::of(file_.number()));
    ROVE_TRY(const ProcFile bell, ProcFile::of(lanes_.bell().descriptor()));
    ROVE_TRY(const ProcFile board, ProcFile::of(lanes_.board_file().number()));
    Writer offer;
    offer.number(kOfferVersion);
    offer.bytes(as_bytes(boot_id()));
    offer.number(static_cast<std::uint32_t>(getpid()));
    offer.number(token_);
    mailbox.write_to(offer);
    bell.write_to(offer);
    board.write_to(offer);
    offer.number(*place_);
    offer_ = offer.take();
    return {};
}

Status DirectLink::connect(Bytes peer_offer) {
    Reader in(peer_offer);
    const auto version = in.number<std::uint8_t>();
    const std::string_view boot = as_text(in.take(kBootIdBytes));
    const auto pid = in.number<std::uint32_t>();
    const auto token = in.number<std::uint64_t>();
    const ProcFile mailbox = ProcFile::read_from(in);
    const ProcFile bell = ProcFile::read_from(in);
    const ProcFile board = ProcFile::read_from(in);
    const auto place = in.number<std::uint32_t>();
    if (!peer_offer.empty() && version != kOfferVersion)
        return fail(ErrorCode::unsupported,
                    "no transport reaches the peer: its offer is of another kind; are both ends started with the same "
                    "--fabric and one version of Rove?");
    if (!in.done() || place >= kBoardPlaces)
        return fail(ErrorCode::invalid, "the peer's offer is malformed: it has {} bytes", peer_offer.size());
    if (boot != boot_id())
        return fail(ErrorCode::unsupported, "the two ends share no memory: they run on different machines");
    ROVE_TRY(MappedRegion remote, map_peers_memory<Region>(pid, mailbox));
    ROVE_CHECK(check_owner(*remote, token, token_));
    ROVE_TRY(peers_board_, map_peers_memory<BoardMemory>(pid, board));
    on_peers_board_ = PlaceOnBoard(*peers_board_, place);
    ROVE_TRY(peers_bell_, PeersBells::of_process().open({pid, bell}));
    remote_ = std::move(remote);
    wanted_ = &remote_->wanted;
    sleeper_pays_ = &SleepFence::sleeper_pays();
    for (std::size_t i = 0; i < kTrafficKinds; ++i)
        outgoing_[i] = RingWriter(remote_->rings[i], &region_->credits[i], token);
    return {};
}

void DirectLink::transmit_credit(Traffic traffic) {
    if (!remote_) return;
    const auto i = index_of(traffic);  // partner: RingWriter::load_credit
    std::atomic_ref(remote_->credits[i]).store(incoming_[i].given_back(), std::memory_order_release);
}

// What another thread is to free. It belongs to the link until that thread begins (or the link gives it up), and to the thread from then on.
struct DirectLink::Freeing {
    enum class State : std::uint8_t { waits, begun, done, given_up };
    struct Ring {
        std::uint64_t touched;
        KeptLines kept;
    };
    std::array<Ring, kTrafficKinds> rings;
    std::shared_ptr<Region> region;
    std::atomic<State> state{State::waits};

    [[nodiscard]] bool end_wait(State as) noexcept {
        State waits = State::waits;
        return state.compare_exchange_strong(waits, as, std::memory_order_acq_rel);
    }
};

// The pages of a memory file are freed for both ends at once. The reader, which has given back all lines, looks at the next one, whose page stays.
// The kernel may wait there for the peer, so another thread does it, and nobody waits for that one.
DirectLink::Pages DirectLink::free_pages() try {
    auto freeing = std::make_shared<Freeing>();
    for (std::size_t i = 0; i < kTrafficKinds; ++i)
        freeing->rings[i] = {outgoing_[i].pages().touched(), outgoing_[i].kept()};
    freeing->region = remote_;
    const bool queued = lanes_.reclaimer().run([freeing] {
        if (!freeing->end_wait(Freeing::State::begun)) return;
        for (std::size_t i = 0; i < kTrafficKinds; ++i)
            free_pages_of(freeing->region->rings[i], freeing->rings[i].touched, freeing->rings[i].kept, MADV_REMOVE);
        freeing->state.store(Freeing::State::done, std::memory_order_release);
    });
    if (!queued) return Pages::kept;
    freeing_ = std::move(freeing);
    return Pages::being_freed;
} catch (const std::bad_alloc&) {
    return Pages::kept;
}

bool DirectLink::pages_are_free() const {
    return freeing_->state.load(std::memory_order_acquire) == Freeing::State::done;
}

bool DirectLink::keep_pages() noexcept {
    if (!freeing_ || !freeing_->end_wait(Freeing::State::given_up)) return false;
    freeing_->region.reset();
    return true;
}

void DirectLink::announce_sleep(bool asleep) {
    std::atomic_ref(region_->wanted).store(asleep ? Wanted::bell : Wanted::nothing, std::memory_order_relaxed);
}

void DirectLink::announce_cold(bool cold) noexcept {
    // A link may become warm while the leader sleeps: another thread sends by it.
    const Wanted warm = lanes_.board().announces_sleep() ? Wanted::bell : Wanted::nothing;
    std::atomic_ref(region_->wanted).store(cold ? Wanted::bit : warm, std::memory_order_relaxed);
    if (cold)
        lanes_.note_cold(*this);
    else
        lanes_.note_warm(*this);
}

void DirectLink::announce_again() noexcept {
    std::atomic_ref(region_->wanted).store(Wanted::bit, std::memory_order_seq_cst);
}

void DirectLink::wake_peer() {
    const Wanted wanted = std::atomic_ref(remote_->wanted).exchange(Wanted::nothing, std::memory_order_relaxed);
    if (on_peers_board_.give(wanted)) peers_bell_.ring();
}

}  // namespace rove::fabric
