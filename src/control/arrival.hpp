// Arrival: a process that has proven to belong to the same user, and asks to be admitted by this node: as a client, as a member, or to
// join. It gets its id, a lane, and the facts that it must know.
//
// Threads: the control thread's.
//
// Invariant: what a guest was given during its meeting is taken back unless it settles: its id, its place in the member's `incoming`, its
// link, its ticket.
#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "control/both_ends.hpp"
#include "control/channel.hpp"
#include "control/control_thread.hpp"
#include "control/expected_lanes.hpp"
#include "control/host.hpp"
#include "control/id_claims.hpp"
#include "control/link_watch.hpp"
#include "control/members.hpp"
#include "control/membership.hpp"
#include "control/own_identity.hpp"
#include "control/places.hpp"

namespace rove::control {

// What the node knows of a process that has connected to it.
struct Guest {
    std::shared_ptr<Channel> channel;
    wire::control::Role role = wire::control::Role::client;
    wire::control::Nonce mine, theirs;
    // Sent if the meeting fails.
    wire::control::Goodbye::Reason reason = wire::control::Goodbye::Reason::refused;
};

class Arrival {
public:
    // The other parts of the control plane that it uses. They outlive it.
    struct Beside {
        const Host& host;
        ControlThread& thread;
        const OwnIdentity& self;
        Members& members;
        Membership& membership;
        IdClaims& ids;
        LinkWatch& links;
    };
    // All outlive it.
    Arrival(const Beside& beside, ClientIndexes& clients, ExpectedLanes& expected_lanes, Guest& guest,
            wire::control::Request request)
        : beside_(beside),
          host_(beside.host),
          members_(beside.members),
          clients_(clients),
          expected_lanes_(expected_lanes),
          guest_(guest),
          request_(std::move(request)),
          link_(beside.host.engines) {}
    ~Arrival() {
        if (guest_.role == wire::control::Role::join && you_ != kNoNode) members_.take_back(you_);
        if (counted_ != nullptr) --counted_->incoming;
    }
    Arrival(const Arrival&) = delete;

    [[nodiscard]] asio::awaitable<Status> let_in();

private:
    [[nodiscard]] bool is_member() const { return guest_.role != wire::control::Role::client; }
    [[nodiscard]] Status check_member() const;
    [[nodiscard]] asio::awaitable<Status> give_name();
    [[nodiscard]] asio::awaitable<Result<NodeId>> id_of_member();
    // The peer that gets the link, if a member at that address is met again; null: none is known.
    [[nodiscard]] std::shared_ptr<PeerState> old_peer() const;
    [[nodiscard]] Status open_offered_link();
    [[nodiscard]] wire::control::Welcome welcome();
    [[nodiscard]] asio::awaitable<Status> await_lane(const wire::control::LaneSecret& secret);
    [[nodiscard]] Status settle();

    const Beside& beside_;
    const Host& host_;
    Members& members_;
    ClientIndexes& clients_;
    ExpectedLanes& expected_lanes_;
    Guest& guest_;
    const wire::control::Request request_;
    ClientIndex client_;
    NodeId you_ = kNoNode;
    // The entry whose `incoming` counts this meeting; null: the member was unknown when the guest arrived.
    MemberEntry* counted_ = nullptr;
    PendingLink link_;
    std::optional<ExpectedLanes::Place> lane_;  // set for a stream
};

}  // namespace rove::control
