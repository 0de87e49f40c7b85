#include "control/places.hpp"

#include <algorithm>
#include <map>
#include <string_view>

namespace rove::control {

Result<ClientIndex> ClientIndexes::take() {
    for (std::size_t tried = 0; tried < most_; ++tried) {
        const std::size_t index = next_++ % most_;
        if (taken_.size() <= index) taken_.resize(index + 1);
        if (taken_[index]) continue;
        taken_[index] = true;
        return ClientIndex(*this, static_cast<std::uint16_t>(index));
    }
    return fail(ErrorCode::overloaded, "this node has {} clients, the most there may be", most_);
}

Strangers::Place::Place(Strangers& all, const std::shared_ptr<Channel>& channel) : all_(all), channel_(channel.get()) {
    if (all.all_.size() >= all.most_) all.make_room();
    all.all_.push_back({channel, channel->origin(), Clock::now()});
}

void Strangers::Place::challenged() {
    for (Stranger& each : all_.all_)
        if (each.channel.get() == channel_) each.challenged = true;
}

void Strangers::Place::proven() {
    if (channel_ == nullptr) return;
    all_.all_.remove_if([this](const Stranger& each) { return each.channel.get() == channel_; });
    channel_ = nullptr;
}

// Drops one connection, the oldest of the first kind that exists: those that have sent nothing; those whose time to prove themselves is
// over; those from the origin that has the most. Honest processes answer at once, and open one or two meetings each.
void Strangers::make_room() {
    auto goes = std::ranges::find(all_, false, &Stranger::challenged);
    if (goes == all_.end() && Clock::now() - all_.front().since >= proof_time_) goes = all_.begin();
    if (goes == all_.end()) {
        std::map<std::string_view, std::size_t> from;
        for (const Stranger& each : all_) ++from[each.origin];
        goes = std::ranges::max_element(
            all_, {}, [&](const Stranger& each) { return from[each.origin]; });  // the first of equal ones
    }
    const std::shared_ptr<Channel> channel = std::move(goes->channel);
    all_.erase(goes);
    channel->close();
}

}  // namespace rove::control
