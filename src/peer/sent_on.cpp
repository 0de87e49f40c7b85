#include "peer/sent_on.hpp"

#include <new>
#include <utility>

namespace rove {

SentOn::Calls::iterator SentOn::erase(Calls::iterator call) {
    places_by_age_.erase(call->second.age);
    passing_ -= call->second.age.first ? 1 : 0;
    const auto count = count_of_.find(call->second.call.origin);
    if (--count->second == 0) count_of_.erase(count);
    return calls_.erase(call);
}

void SentOn::add(const Forwarded& call, bool passes_here) {
    const std::uint64_t at = place(call.origin, call.call);
    if (const auto before = calls_.find(at); before != calls_.end()) erase(before);
    if (!passes_here && passing_ >= kMax) return;
    if (calls_.size() >= kMax) erase(calls_.find(places_by_age_.begin()->second));
    const Age age{passes_here, next_age_++};
    try {
        places_by_age_.emplace(age, at);
        calls_.emplace(at, Entry{call, age});
        ++count_of_[call.origin];
        passing_ += passes_here ? 1 : 0;
    } catch (const std::bad_alloc&) {
        places_by_age_.erase(age);
        calls_.erase(at);
    }
}

void SentOn::sent(const Forwarded& call) {
    const auto found = calls_.find(place(call.origin, call.call));
    if (found != calls_.end() && found->second.call.generation == call.generation)
        found->second.call.position = call.position;
}

bool SentOn::answered(NodeId origin, std::uint16_t call, std::uint32_t generation) {
    const auto found = calls_.find(place(origin, call));
    if (found == calls_.end() || found->second.call.generation != generation) return false;
    erase(found);
    return true;
}

void SentOn::left(NodeId origin) {
    for (auto call = calls_.lower_bound(place(origin, 0)); call != calls_.end() && call->second.call.origin == origin;)
        call = erase(call);
}

void SentOn::were_taken() {
    for (auto& [at, entry] : calls_) entry.call.position = 0;
}

bool SentOn::is_full_for(NodeId origin, std::uint16_t call) const {
    if (calls_.contains(place(origin, call))) return false;  // it takes that one's place
    if (passing_ >= kMax) return true;
    const auto count = count_of_.find(origin);
    return count != count_of_.end() && count->second >= kMaxOfCaller;
}

}  // namespace rove
