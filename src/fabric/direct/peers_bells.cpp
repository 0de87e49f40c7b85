#include "fabric/direct/peers_bells.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.hpp"

namespace rove::fabric {

std::vector<PeersBells::Opened>::iterator PeersBells::find(const Name& name) {
    return std::ranges::find(opened_, name, &Opened::name);
}

Status PeersBells::open(const Name& name) {
    if (find(name) != opened_.end()) return {};
    opened_.reserve(kOpenMax);
    if (opened_.size() == kOpenMax) opened_.erase(opened_.begin());
    Result<Doorbell> bell = Doorbell::open_peers(name.pid, name.file);
    // While it is opened it takes a few descriptors more.
    for (int more = 0; !bell && bell.error().code() == ErrorCode::overloaded && more < 4 && !opened_.empty(); ++more) {
        opened_.erase(opened_.begin());
        bell = Doorbell::open_peers(name.pid, name.file);
    }
    if (!bell) return tl::unexpected<Error>(bell.error());
    opened_.push_back({name, std::move(*bell)});
    return {};
}

void PeersBells::ring(const Name& name) noexcept try {
    auto bell = find(name);
    if (bell == opened_.end()) {
        if (const Status again = open(name); !again) {
            if (!std::exchange(has_complained_, true))
                log().warn("a peer that sleeps is woken up to 100 ms late, because its doorbell cannot be opened: {}",
                           again.error().message());
            return;
        }
        bell = opened_.end() - 1;
    }
    std::rotate(bell, bell + 1, opened_.end());
    opened_.back().bell.ring();
} catch (const std::bad_alloc&) {  // as without a descriptor
}

void PeersBells::close(const Name& name) noexcept {
    if (const auto bell = find(name); bell != opened_.end()) opened_.erase(bell);
}

}  // namespace rove::fabric
