// Opening: one attempt to open a meeting with a node: connects, proves who this node is, checks who the other one is, opens the lane, and
// has the link adopted. Meetings decides which meetings are opened, and how often.
//
// Threads: the control thread's.
//
// Invariant: nothing of this node is disclosed before the other end has proven that it belongs to the same user.
#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "control/address.hpp"
#include "control/both_ends.hpp"
#include "control/channel.hpp"
#include "control/control_thread.hpp"
#include "control/host.hpp"
#include "control/link_watch.hpp"
#include "control/members.hpp"
#include "control/membership.hpp"
#include "control/own_cookie.hpp"
#include "control/own_identity.hpp"
#include "control/servers.hpp"

namespace rove::control {

using Endpoints = std::vector<asio::generic::stream_protocol::endpoint>;

// A meeting to open.
struct Wanted {
    std::string address;
    Endpoints endpoints;
    wire::control::Role role = wire::control::Role::client;
    std::shared_ptr<PeerState> old;
    NodeId member = kNoNode;          // the member, if one member meets another
    wire::control::PublicKey whom{};  // its key, as it was known when this began
    bool probe = false;               // only checks whether that member lives
    bool replace = false;
};

struct Met {
    std::shared_ptr<PeerState> peer;  // null: redirected, or a probe
    NodeId id = kNoNode;
    std::string redirect;
};

class Opening {
public:
    // The other parts of the control plane that it uses. They outlive it.
    struct Beside {
        const Host& host;
        ControlThread& thread;
        std::set<Channel*>& channels;  // all open ones
        OwnCookie& cookie;
        const OwnIdentity& self;
        Members& members;
        Membership& membership;
        LinkWatch& links;
    };
    // All of these outlive it. opening: members to which a meeting is being opened.
    Opening(const Beside& beside, Servers& servers, std::multiset<NodeId>& opening, const Wanted& wanted)
        : beside_(beside),
          host_(beside.host),
          servers_(servers),
          opening_(opening),
          wanted_(wanted),
          link_(beside.host.engines) {}
    Opening(const Opening&) = delete;

    // Callable once. timed_out at that time at the latest.
    [[nodiscard]] asio::awaitable<Result<Met>> meet(TimePoint until);

    // For a failed attempt: whether the node's last message was a goodbye with this reason.
    [[nodiscard]] bool was_told(wire::control::Goodbye::Reason reason) const {
        return channel_ && channel_->farewell() && channel_->farewell()->goodbye.reason == reason;
    }
    // Whether the node accepted the connection and dropped it without an answer: it may answer the next time.
    [[nodiscard]] bool was_dropped() const { return channel_ && !is_heard_; }

private:
    [[nodiscard]] asio::awaitable<Result<Socket>> connect(TimePoint until);
    [[nodiscard]] asio::awaitable<Result<Met>> converse(TimePoint until);
    [[nodiscard]] asio::awaitable<Status> check_node();
    // The address at which the node answers, as Servers spells it.
    [[nodiscard]] std::string spelling() const;
    // The peer that gets the link, if one is met again; null: none is known.
    [[nodiscard]] std::shared_ptr<PeerState> old_peer() const;
    [[nodiscard]] Status open_link();
    [[nodiscard]] asio::awaitable<Status> ask();
    [[nodiscard]] Status check_welcome(const wire::control::Welcome& welcome);
    [[nodiscard]] asio::awaitable<Result<wire::control::ConnectedBy>> open_lane(const wire::control::Welcome& welcome,
                                                                                TimePoint until);
    [[nodiscard]] asio::awaitable<Status> open_stream(const wire::control::Welcome& welcome, TimePoint until);
    [[nodiscard]] Result<Met> settle(const wire::control::Welcome& welcome, const wire::control::Settled& settled);
    [[nodiscard]] tl::unexpected<Error> late() const;
    void member_is_gone(const char* why);

    const Beside& beside_;
    const Host& host_;
    Servers& servers_;
    std::multiset<NodeId>& opening_;
    const Wanted& wanted_;
    std::shared_ptr<Channel> channel_;
    bool is_heard_ = false;
    wire::control::Nonce mine_, theirs_;
    wire::control::ProofGiven proof_;
    PendingLink link_;
};

}  // namespace rove::control
