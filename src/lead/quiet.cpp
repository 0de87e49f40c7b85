#include "lead/quiet.hpp"

#include <fmt/format.h>

namespace rove {

bool QuietRuns::begin(const PeerState* from) {
    if (what_is_full(from, own_threads_) != nullptr) return false;
    const TimePoint now = Clock::now();
    for (Share* share : {&all_, &of_peer_[from]}) {
        ++share->threads;
        share->changed = now;
    }
    return true;
}

bool QuietRuns::end(const PeerState* from) {
    const bool held_others = what_is_full(from, 0) != nullptr;
    const TimePoint now = Clock::now();
    const auto of = of_peer_.find(from);
    for (Share* share : {&all_, &of->second}) {
        --share->threads;
        share->changed = now;
    }
    if (of->second.threads == 0) of_peer_.erase(of);
    return held_others;
}

const QuietRuns::Share* QuietRuns::what_is_full(const PeerState* from, unsigned beyond) const {
    const auto of = of_peer_.find(from);
    if (of == of_peer_.end()) return of_peer_.size() < kFirstOfPeersMax ? nullptr : &all_;
    if (all_.threads >= kQuietRunsMax + beyond) return &all_;
    return of->second.threads >= kQuietRunsOfPeerMax + beyond ? &of->second : nullptr;
}

std::optional<TimePoint> QuietRuns::held_until(const code::Function& function, const PeerState* from) const {
    if (!holds(function, from)) return std::nullopt;
    return what_is_full(from, 0)->changed + kQuietHoldFor;
}

Error QuietRuns::too_many(const std::string& node, const code::Function& function) {
    return {
        ErrorCode::overloaded,
        fmt::format(
            "{} on {}: too many functions wait there without letting others run on their threads ({} of one peer, {} "
            "of "
            "all), and none of them has ended for {} s. Functions wait like this under rove::no_nesting, while their "
            "caller does not take a result, and where functions that call one another have used up their thread's "
            "stack; call less deeply, or fewer at once",
            function.name, node, kQuietRunsOfPeerMax, kQuietRunsMax, kQuietHoldFor.count())};
}

}  // namespace rove
