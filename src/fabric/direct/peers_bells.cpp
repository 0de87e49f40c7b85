#include "fabric/direct/peers_bells.hpp"

#include <new>

#include "base/log.hpp"
#include "base/made_once.hpp"

namespace rove::fabric {

PeersBells& PeersBells::of_process() {
    static constinit MadeInEachProcess<PeersBells> bells;
    return bells.get([] { return new PeersBells; });
}

Result<PeersBells::Use> PeersBells::open(const Name& name) {
    const Bells::iterator bell = [this, &name] {
        const MutexLock lock(mutex_);
        const auto [known, is_new] = by_name_.try_emplace(name);
        if (is_new) try {
                known->second = closed_.insert(closed_.end(), Bell{.name = name});
            } catch (const std::bad_alloc&) {
                by_name_.erase(known);
                throw;
            }
        ++known->second->links;
        return known->second;
    }();
    Use use(*this, bell);
    if (const Result<Opened> opened = open_again(bell); !opened) return tl::unexpected<Error>(opened.error());
    return use;
}

void PeersBells::leave(Bells::iterator bell) noexcept {
    Bells ended;  // closed without the lock
    const MutexLock lock(mutex_);
    if (--bell->links > 0) return;
    by_name_.erase(bell->name);
    ended.splice(ended.end(), bell->opened ? open_ : closed_, bell);
}

void PeersBells::ring(Bells::iterator bell) noexcept try {
    const Result<Opened> opened = open_again(bell);
    if (opened) return (*opened)->ring();
    if (!has_complained_.exchange(true, std::memory_order_relaxed))
        log().warn("a peer that sleeps is woken late, after up to 2 s, because its doorbell cannot be opened: {}",
                   opened.error().message());
} catch (const std::bad_alloc&) {  // as without a descriptor
}

Result<PeersBells::Opened> PeersBells::open_again(Bells::iterator bell) {
    {
        const MutexLock lock(mutex_);
        if (bell->opened) {
            note_rung(bell);
            return bell->opened;
        }
    }
    ROVE_TRY(Opened opened, open_now(bell->name));
    opened = keep(bell, std::move(opened));
    while (take_oldest_beyond(kOpenMax)) continue;
    return opened;
}

Result<PeersBells::Opened> PeersBells::open_now(const Name& name) {
    Result<Doorbell> bell = Doorbell::open_peers(name.pid, name.file);
    // While it is opened it takes a few descriptors more.
    for (int more = 0; !bell && bell.error().code() == ErrorCode::overloaded && more < 4; ++more) {
        if (!take_oldest_beyond(0)) break;
        bell = Doorbell::open_peers(name.pid, name.file);
    }
    if (!bell) return tl::unexpected<Error>(bell.error());
    return std::make_shared<const Doorbell>(std::move(*bell));
}

PeersBells::Opened PeersBells::keep(Bells::iterator bell, Opened opened) noexcept {
    const MutexLock lock(mutex_);
    if (!bell->opened) {
        bell->opened = std::move(opened);
        open_.splice(open_.end(), closed_, bell);
    }
    note_rung(bell);
    return bell->opened;
}

void PeersBells::note_rung(Bells::iterator bell) {
    bell->rung_at = Clock::now();
    open_.splice(open_.end(), open_, bell);
}

void PeersBells::close_quiet(TimePoint now) noexcept {
    for (;;) {
        Opened quiet;  // closed without the lock
        const MutexLock lock(mutex_);
        if (open_.size() <= kStayOpen || now - open_.front().rung_at < kQuietFor) return;
        quiet = take_oldest();
    }
}

PeersBells::Opened PeersBells::take_oldest_beyond(std::size_t open) noexcept {
    const MutexLock lock(mutex_);
    return open_.size() > open ? take_oldest() : nullptr;
}

PeersBells::Opened PeersBells::take_oldest() noexcept {
    const Bells::iterator oldest = open_.begin();
    Opened opened = std::move(oldest->opened);
    oldest->opened = nullptr;
    closed_.splice(closed_.end(), open_, oldest);
    return opened;
}

}  // namespace rove::fabric
