// Joining: how this node becomes a member of an existing cluster: it asks a node for the member that gives ids, joins there, and meets all
// the others.
//
// Threads: the control thread's.
//
// Invariants: it keeps nothing between two calls. Once join() has succeeded, each member that was named to it has been
// met, is being met by Healing, or is known to have ended.
#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "control/healing.hpp"
#include "control/meetings.hpp"

namespace rove::control {

inline constexpr unsigned kRedirectsMax = 8;

class Joining {
public:
    // The other parts of the control plane that it uses. They outlive it.
    struct Beside {
        const Host& host;
        ControlThread& thread;
        const OwnIdentity& self;
        Members& members;
        Membership& membership;
        Meetings& meetings;
        Healing& healing;
    };
    explicit Joining(const Beside& beside) : beside_(beside) {}
    Joining(const Joining&) = delete;

    // Joins at the node with that address. Returns the member that has given the id.
    [[nodiscard]] asio::awaitable<Result<std::shared_ptr<PeerState>>> join(std::string address, Endpoints endpoints);

private:
    [[nodiscard]] asio::awaitable<Result<Met>> meet_giver_of_ids(std::string address, Endpoints endpoints);
    [[nodiscard]] asio::awaitable<void> meet_others(const Met& giver);

    const Beside beside_;
};

}  // namespace rove::control
