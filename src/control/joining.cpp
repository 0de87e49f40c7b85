#include "control/joining.hpp"

#include <asio/experimental/as_tuple.hpp>
#include <asio/use_awaitable.hpp>

#include "control/co_try.hpp"

namespace rove::control {
namespace {

constexpr auto kAwait = asio::experimental::as_tuple(asio::use_awaitable);
using wire::control::Member;
using wire::control::Role;

}  // namespace

asio::awaitable<Result<std::shared_ptr<PeerState>>> Joining::join(std::string address, Endpoints endpoints) {
    ROVE_CO_TRY(const Met met, co_await meet_giver_of_ids(std::move(address), std::move(endpoints)));
    co_await meet_others(met);
    co_return met.peer;
}

asio::awaitable<Result<Met>> Joining::meet_giver_of_ids(std::string address, Endpoints endpoints) {
    const TimePoint limit = Clock::now() + beside_.host.options.connect_timeout;
    Wanted wanted{.address = address, .endpoints = endpoints, .role = Role::join};
    for (unsigned redirects = 0;;) {
        Result<Met> asked = co_await beside_.meetings.meet(wanted);
        if (asked && asked->peer) co_return asked;
        if (asked) {
            if (++redirects > kRedirectsMax || asked->redirect == beside_.self.address())
                co_return fail(ErrorCode::invalid, "cannot join: the nodes at {} send on from one to the other",
                               address);
            ROVE_CO_TRY(const Address next, parse_address(asked->redirect));
            ROVE_CO_TRY(Endpoints there, resolve(next, true));
            wanted = {.address = asked->redirect, .endpoints = std::move(there), .role = Role::join};
            continue;
        }
        // The node that this one was referred to has just ended. The node that referred it will notice that soon, so it is asked again.
        if (redirects == 0 || asked.error().code() != ErrorCode::disconnected || Clock::now() >= limit)
            co_return tl::unexpected<Error>(asked.error());
        co_await beside_.thread.pause(std::chrono::milliseconds(20));
        wanted = {.address = address, .endpoints = endpoints, .role = Role::join};
        redirects = 0;
    }
}

// Meets up to kHealingMax members concurrently, and the others after them. A member that is stopped delays only this node's start; if many
// are stopped, this node does not wait for all of them, but meets them later, like members that were lost.
asio::awaitable<void> Joining::meet_others(const Met& giver) {
    const NodeIds& ids = beside_.host.ids;
    std::vector<std::shared_ptr<Healing::FirstTry>> tries;
    for (const Member& member : beside_.members.list(ids.id())) {
        if (member.id == giver.id) continue;
        tries.push_back(std::make_shared<Healing::FirstTry>(beside_.thread.io()));
        beside_.membership.expect(member.id);
        beside_.healing.begin_at_once(member.id, tries.back());
    }
    const TimePoint long_enough = Clock::now() + beside_.host.options.connect_timeout;
    for (const auto& each : tries) {
        if (each->is_over) continue;
        each->ended.expires_at(long_enough);
        (void)co_await each->ended.async_wait(kAwait);  // returns at the latest when that ends
    }
}

}  // namespace rove::control
