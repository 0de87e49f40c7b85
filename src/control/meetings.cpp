#include "control/meetings.hpp"

#include <asio/experimental/as_tuple.hpp>
#include <asio/use_awaitable.hpp>
#include <random>

#include "control/co_try.hpp"

namespace rove::control {
namespace {

constexpr auto kAwait = asio::experimental::as_tuple(asio::use_awaitable);
// Attempts in all: a connection that the node dropped before its welcome, without a goodbye (it had too many), is opened again, within the
// time for a meeting.
constexpr unsigned kTriesMax = 8;
// The pause after each try but the last: doubles up to 128 ms, minus a random part, so that openers that were dropped together do not
// return together.
std::chrono::milliseconds pause_after(unsigned tries) {
    const unsigned longest = 1U << tries;
    std::random_device random;
    return std::chrono::milliseconds(std::uniform_int_distribution(longest / 2, longest)(random));
}

using wire::control::Goodbye;
using wire::control::Role;

}  // namespace

void Meetings::drop() {
    drops_all_ = true;
    attempts_.clear();
}

asio::awaitable<Result<std::shared_ptr<PeerState>>> Meetings::reach(std::string address, Endpoints endpoints,
                                                                    std::shared_ptr<PeerState> old) {
    std::shared_ptr<PeerState> known = old;
    std::string spelling;
    NodeId member = beside_.members.of(old);
    for (const auto& endpoint : endpoints) {
        const std::string each = canonical(endpoint);
        if (spelling.empty()) spelling = each;
        if (old) continue;
        if (member == kNoNode) member = beside_.members.at(each);
        if (!known) known = servers_.at(each);
    }
    if (member == beside_.host.ids.id() && !beside_.self.address().empty()) member = kNoNode;
    if (member != kNoNode && !old) {
        ROVE_CO_TRY(const bool is_there, co_await answers_there(member));
        if (!is_there) member = kNoNode;
    }
    if (member != kNoNode && !known) known = beside_.members.find(member)->peer.lock();
    if (known && beside_.host.engines.linked(*known)) co_return known;
    Wanted wanted{.address = std::move(address), .endpoints = std::move(endpoints), .old = known};
    std::string key = "client:" + spelling;
    if (member != kNoNode) {
        wanted.role = Role::member;
        wanted.member = member;
        wanted.whom = beside_.members.find(member)->key;
        key = fmt::format("member:{}", member);
    } else if (old && servers_.at(spelling) != old) {
        // Other threads that meet that address get another peer.
        key = fmt::format("old:{}", static_cast<const void*>(old.get()));
    }
    const Result<Met> met = co_await share(std::move(key), std::move(wanted));
    if (!met) co_return tl::unexpected<Error>(met.error());
    co_return met->peer;
}

// A member states itself at which address it listens. That need not be true, so this node connects there once to see which process answers.
asio::awaitable<Result<bool>> Meetings::answers_there(NodeId id) {
    const MemberEntry asked = *beside_.members.find(id);
    if (asked.answers_there) co_return true;
    const Status met = co_await meet_member(id, asked.state == MemberEntry::State::living);
    MemberEntry& entry = *beside_.members.find(id);
    if (!met && met.error().code() == ErrorCode::timed_out) co_return tl::unexpected<Error>(met.error());
    if (!met || !entry.is_known_as(asked.key)) co_return false;
    entry.answers_there = true;
    co_return true;
}

asio::awaitable<Status> Meetings::meet_member(NodeId id, bool probe) {
    const MemberEntry* entry = beside_.members.find(id);
    if (entry == nullptr || entry->state == MemberEntry::State::gone)
        co_return fail(ErrorCode::disconnected, "node {} has left", id);
    const std::string at = entry->address;
    ROVE_CO_TRY(const Address address, parse_address(at));
    ROVE_CO_TRY(Endpoints endpoints, resolve(address, true));
    const Result<Met> met =
        co_await share(fmt::format("{}:{}", probe ? "probe" : "member", id), {.address = at,
                                                                              .endpoints = std::move(endpoints),
                                                                              .role = Role::member,
                                                                              .old = entry->peer.lock(),
                                                                              .member = id,
                                                                              .whom = entry->key,
                                                                              .probe = probe});
    if (!met) co_return tl::unexpected<Error>(met.error());
    co_return Status();
}

// However the attempt ends, those that wait for it are woken, which needs no memory.
class Meetings::AttemptUnderWay {
public:
    AttemptUnderWay(Meetings& all, std::string key, const std::shared_ptr<Attempt>& attempt)
        : all_(all), place_(all.attempts_.emplace(std::move(key), attempt).first) {}
    ~AttemptUnderWay() {
        if (all_.drops_all_) return;  // all who wait for it are dropped, too
        Attempt& attempt = *place_->second;
        if (!attempt.result) attempt.result.emplace(tl::unexpected<Error>(no_memory()));
        attempt.ended.cancel();
        all_.attempts_.erase(place_);
    }
    AttemptUnderWay(const AttemptUnderWay&) = delete;

private:
    Meetings& all_;
    std::map<std::string, std::shared_ptr<Attempt>>::iterator place_;
};

// If a meeting with the same key is under way, waits for its result; otherwise begins one.
asio::awaitable<Result<Met>> Meetings::share(std::string key, Wanted wanted) {
    if (const auto under_way = attempts_.find(key); under_way != attempts_.end()) {
        const std::shared_ptr<Attempt> attempt = under_way->second;
        while (!attempt->result) (void)co_await attempt->ended.async_wait(kAwait);
        co_return *attempt->result;
    }
    const auto attempt = std::make_shared<Attempt>(beside_.thread.io());
    const AttemptUnderWay under_way(*this, std::move(key), attempt);
    attempt->result.emplace(co_await meet(std::move(wanted)));
    co_return *attempt->result;
}

std::optional<Met> Meetings::linked_to(NodeId member) {
    const MemberEntry* entry = member != kNoNode ? beside_.members.find(member) : nullptr;
    const std::shared_ptr<PeerState> peer = entry != nullptr ? entry->peer.lock() : nullptr;
    if (!peer || !beside_.host.engines.linked(*peer)) return std::nullopt;
    return Met{.peer = peer, .id = member};
}

bool Meetings::comes(NodeId member) {
    const MemberEntry* entry = member != kNoNode ? beside_.members.find(member) : nullptr;
    return entry != nullptr && entry->incoming > 0;
}

asio::awaitable<Result<Met>> Meetings::meet(Wanted wanted) {
    const NodeId member = wanted.probe ? kNoNode : wanted.member;
    const TimePoint limit = Clock::now() + beside_.host.options.connect_timeout;
    for (unsigned tries = 1;; ++tries) {
        // If the member has opened a meeting with this node, that one is used.
        while (comes(member) && Clock::now() < limit) co_await beside_.thread.pause(std::chrono::milliseconds(1));
        if (auto met = linked_to(member)) co_return std::move(*met);
        Opening opening(beside_, servers_, opening_, wanted);
        Result<Met> met = co_await opening.meet(limit);
        if (met || Clock::now() >= limit) co_return met;
        const bool linked = opening.was_told(Goodbye::Reason::linked);
        if (linked && wanted.probe) co_return Met{};
        if (linked && member != kNoNode) {
            // The other side reports a link: it is about to be adopted here, or it has ended and only this side knows.
            for (unsigned looks = 0; looks < 100 && Clock::now() < limit; ++looks) {
                if (auto now = linked_to(member)) co_return std::move(*now);
                co_await beside_.thread.pause(std::chrono::milliseconds(1 + looks / 10));
            }
            wanted.replace = true;
            continue;
        }
        if (!opening.was_dropped()) co_return met;
        if (tries >= kTriesMax)
            co_return prefixed(
                met.error(),
                fmt::format("{} meetings were dropped before they were answered: that node has more under way "
                            "than it has places for, or is no node",
                            tries));
        co_await beside_.thread.pause(pause_after(tries));
    }
}

}  // namespace rove::control
