#include "control/healing.hpp"

#include <sodium.h>

#include <algorithm>
#include <asio/experimental/as_tuple.hpp>
#include <asio/use_awaitable.hpp>

#include "base/log.hpp"

namespace rove::control {
namespace {

constexpr auto kAwait = asio::experimental::as_tuple(asio::use_awaitable);
using State = MemberEntry::State;
using Trust = MemberEntry::Trust;

}  // namespace

// While this exists, a conversation tries to meet a member again. `first` is ended by the first attempt, or when this is destroyed.
class Healing::OfMember {
public:
    OfMember(MemberEntry& entry, std::shared_ptr<FirstTry> first) : entry_(entry), first_(std::move(first)) {
        entry_.healing = true;
    }
    ~OfMember() {
        entry_.healing = false;
        tried();
    }
    OfMember(const OfMember&) = delete;
    void tried() {
        if (!first_) return;
        first_->is_over = true;
        std::exchange(first_, nullptr)->ended.cancel();
    }

private:
    MemberEntry& entry_;
    std::shared_ptr<FirstTry> first_;
};

// One of the concurrent meetings that heal the cluster.
class Healing::Place {
public:
    Place(Healing& all, const std::string& address) : all_(all), place_(all.at_.insert(address).first) {}
    ~Place() {
        all_.at_.erase(place_);
        if (all_.room_) all_.room_->cancel();
    }
    Place(const Place&) = delete;

private:
    Healing& all_;
    std::set<std::string>::iterator place_;
};

void Healing::begin(NodeId id) {
    begin_after(ids_.id() > id ? std::chrono::milliseconds(0) : kHealDeference, id, nullptr);
}

void Healing::begin_at_once(NodeId id, std::shared_ptr<FirstTry> first) {
    begin_after(std::chrono::milliseconds(0), id, std::move(first));
}

void Healing::begin_after(std::chrono::milliseconds pause, NodeId id, std::shared_ptr<FirstTry> first) {
    MemberEntry* entry = members_.find(id);
    if (entry->healing) {
        if (first) first->is_over = true;
        return;
    }
    thread_.spawn(meet_again(std::make_shared<OfMember>(*entry, std::move(first)), id, pause),
                  "meeting a member again");
}

// Waits until there is room for the meeting.
asio::awaitable<Status> Healing::meet_in_turn(NodeId id) {
    const std::string address = members_.find(id)->address;
    while (at_.size() >= kHealingMax || at_.contains(address)) (void)co_await room_->async_wait(kAwait);
    const Place place(*this, address);
    co_return co_await meet_(id);
}

asio::awaitable<void> Healing::meet_again(std::shared_ptr<OfMember> healing, NodeId id,
                                          std::chrono::milliseconds next) {
    const MemberEntry& entry = *members_.find(id);
    std::optional<TimePoint> failing_since;
    for (unsigned tries = 1;; ++tries) {
        if (next.count() > 0) {
            const auto jitter = randombytes_uniform(static_cast<std::uint32_t>(next.count() / 4 + 1));
            co_await thread_.pause(next + std::chrono::milliseconds(jitter));
        }
        if (entry.state != State::lost) break;
        const TimePoint began = Clock::now();
        const Status met = co_await meet_in_turn(id);
        healing->tried();
        if (entry.state != State::lost) break;
        if (!met)
            complaints_.say(name_(),
                            fmt::format("node {} at {} was not met: {}", id, entry.address, met.error().message()));
        failing_since = failing_since.value_or(began);
        if ((entry.trust == Trust::told && tries >= kToldTriesMax) || Clock::now() - *failing_since > kHealTimeMax) {
            give_up_(id, entry.key, "it did not answer for long");
            break;
        }
        next = std::clamp(next * 2, kHealPauseMin, kHealPauseMax);
    }
}

}  // namespace rove::control
