// The control plane: who is there, and may they come in? It listens, meets other processes, keeps the list of members, and
// notices a peer's end. One thread; nothing of it is on the way of a call. docs/meeting.md has the conversation.
//
//     control.cpp      its beginning, who asks for a meeting, its end
//     opening.cpp      a meeting as its opener sees it
//     receiving.cpp    a meeting as the node sees it that was called on
//     membership.cpp   joining, members that come and go, links that were cut
#pragma once

#include <asio/awaitable.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "control/address.hpp"
#include "control/channel.hpp"
#include "control/control_thread.hpp"
#include "control/cookie.hpp"
#include "control/expected_lanes.hpp"
#include "control/identity.hpp"
#include "control/listener.hpp"
#include "control/members.hpp"
#include "control/places.hpp"
#include "engine/locked_fabric.hpp"
#include "engine/node_functions.hpp"
#include "engine/peers.hpp"
#include "peer/complaints.hpp"

namespace rove::control {

// How long a connection that has proven nothing may take for its first message. Loopback brings it in microseconds.
inline constexpr auto kHelloTimeMax = std::chrono::seconds(1);
// How often a node that is joining others looks whether it has its id by now, for those who want to meet it and wait for that.
inline constexpr auto kIdentityLook = std::chrono::milliseconds(5);
// Proven meetings under way at once. Each costs mailboxes (2 MiB, of which what is written counts) and 64 KiB of messages
// at most (a welcome alone may have 48); more of them are refused as overloaded.
inline constexpr std::size_t kMeetingsMax = 256;
inline constexpr unsigned kRedirectsMax = 8;
// Pauses between the attempts to meet a member again.
inline constexpr std::chrono::milliseconds kHealPauseMin{50}, kHealPauseMax{5000};
// Meetings at once that heal the cluster, each to another address: a descriptor and a meeting's memory each. Others wait.
inline constexpr std::size_t kHealingMax = 32;
// Tries to meet a member that this node was only told of: with the pauses 16 s or more.
inline constexpr unsigned kToldTriesMax = 10;
// From the first failed try on, pauses included: a member that does not answer for that long is taken for gone. If it lives it
// comes by itself, and its key is known.
inline constexpr auto kHealTimeMax = std::chrono::minutes(10);
// The member with the lower id leaves the first attempt to the other one.
inline constexpr std::chrono::milliseconds kHealDeference{250};

// The node, as its control plane sees it. All of it outlives the control plane.
struct Host {
    const NodeOptions& options;
    Routes& routes;
    Peers& peers;
    LockedFabric& fabric;
    const NodeFunctions& functions;
    std::function<std::string()> name;   // for messages
    std::function<void()> every_second;  // what else is to be looked at now and then
};

class Control {
public:
    // overloaded: no descriptors or threads left for it.
    [[nodiscard]] static Result<std::unique_ptr<Control>> create(Host host);
    ~Control();
    Control(const Control&) = delete;

    // Listens; gives the address with its real port, or "" for an empty one. Whoever connects waits until accept().
    [[nodiscard]] Result<std::string> listen(const std::string& address);
    void accept();  // others are met once identity_known() is called
    void identity_known();
    // Becomes a member of the nodes of which one is at the address, and meets all of them.
    [[nodiscard]] Status join(const std::string& address);
    // Meets the node at the address, or gives the link that there is; a peer given as `old` is brought back to life. Threads that
    // ask for one node at once share a meeting. From any thread but the control thread. cancelled: the node is ending.
    [[nodiscard]] Result<std::shared_ptr<PeerState>> connect(const std::string& address, std::shared_ptr<PeerState> old,
                                                             std::optional<TimePoint> deadline = std::nullopt);
    void stop_accepting();
    void stop();  // says goodbye, ends every connection and the thread

private:
    using Endpoints = std::vector<asio::generic::stream_protocol::endpoint>;
    using Goodbye = wire::control::Goodbye;
    using Role = wire::control::Role;

    // A meeting to open.
    struct Wanted {
        std::string address;
        Endpoints endpoints;
        Role role = Role::client;
        std::shared_ptr<PeerState> old;
        NodeId member = kNoNode;  // whom, as one member meets another
        bool probe = false;       // only whether that member is there
        bool replace = false;
    };
    struct Met {
        std::shared_ptr<PeerState> peer;  // null: redirected, or a probe
        NodeId id = kNoNode;
        std::string redirect;
        std::vector<wire::control::Member> members;
    };
    // A meeting under way that somebody may wait for.
    struct Attempt {
        explicit Attempt(asio::io_context& io) : ended(io, asio::steady_timer::time_point::max()) {}
        asio::steady_timer ended;
        std::optional<Result<Met>> result;
    };
    class AttemptUnderWay;
    // Whom a connection is watched for.
    struct Watched {
        std::shared_ptr<PeerState> peer;
        std::uint64_t meeting = 0;
        NodeId member = kNoNode;  // as which it is a member
        ClientIndex client{};     // as which it is a client of this node
    };
    // What the node knows of who called on it.
    struct Guest {
        std::shared_ptr<Channel> channel;
        Role role = Role::client;
        wire::control::Nonce mine, theirs;
        Goodbye::Reason reason = Goodbye::Reason::refused;  // to be said if they do not meet
    };
    // A link that was adopted and that nobody watches yet: it ends with this, unless somebody takes it from here to watch it.
    class Unwatched {
    public:
        Unwatched(Control& control, Watched who) : control_(&control), who_(std::move(who)) {}
        Unwatched(Unwatched&& other) noexcept
            : control_(std::exchange(other.control_, nullptr)), who_(std::move(other.who_)) {}
        Unwatched& operator=(Unwatched&&) = delete;
        ~Unwatched();
        [[nodiscard]] Watched take() {
            control_ = nullptr;
            return std::move(who_);
        }

    private:
        Control* control_;  // null: it was taken
        Watched who_;
    };
    class Arrival;
    class Counted;
    class Deadline;
    class Healing;
    class HealPlace;

    explicit Control(Host host);

    // ---- control.cpp
    [[nodiscard]] Result<Cookie> cookie();

    // ---- opening.cpp
    [[nodiscard]] asio::awaitable<Result<std::shared_ptr<PeerState>>> reach(std::string address, Endpoints endpoints,
                                                                            std::shared_ptr<PeerState> old);
    [[nodiscard]] asio::awaitable<Result<bool>> answers_there(NodeId id);
    [[nodiscard]] asio::awaitable<Result<Met>> share(std::string key, Wanted wanted);
    [[nodiscard]] asio::awaitable<Result<Met>> meet(Wanted wanted);
    [[nodiscard]] asio::awaitable<Result<Met>> meet_once(Wanted& wanted, TimePoint until,
                                                         std::shared_ptr<Channel>& channel, bool& heard);
    [[nodiscard]] asio::awaitable<Result<Met>> converse(std::shared_ptr<Channel> channel, const Wanted& wanted,
                                                        TimePoint until, bool& heard);
    [[nodiscard]] Status check_welcome(const Wanted& wanted, const wire::control::Welcome& welcome, Bytes statement);
    [[nodiscard]] asio::awaitable<Result<std::unique_ptr<fabric::Link>>> open_stream(
        asio::generic::stream_protocol::endpoint endpoint, wire::control::Welcome welcome, TimePoint until);

    // ---- receiving.cpp
    [[nodiscard]] asio::awaitable<void> receive_one(std::shared_ptr<Channel> channel);
    [[nodiscard]] asio::awaitable<Status> welcome(Guest& guest, Strangers::Place& stranger);

    // ---- membership.cpp
    [[nodiscard]] asio::awaitable<Result<std::shared_ptr<PeerState>>> join_all(std::string address,
                                                                               Endpoints endpoints);
    [[nodiscard]] asio::awaitable<Result<NodeId>> give_id(const wire::control::Request& request);
    [[nodiscard]] wire::control::Certificate certify(NodeId id) const;
    [[nodiscard]] asio::awaitable<Result<Met>> meet_member(NodeId id, bool probe);
    [[nodiscard]] asio::awaitable<void> watch(std::shared_ptr<Channel> channel, Unwatched link);
    [[nodiscard]] bool gives_ids(NodeId id) const;
    [[nodiscard]] asio::awaitable<bool> gives_ids_now(NodeId id);
    void member_is_here(NodeId id, const Peers::Adopted& adopted, const std::shared_ptr<Channel>& channel);
    void member_went(NodeId id, std::uint64_t meeting, bool left);
    // `said`: the log has it, or will, from the end of its link.
    void member_is_gone(NodeId id, const wire::control::PublicKey& key, const std::string& why, bool said = false);
    void heard_of(const std::vector<wire::control::Member>& members, NodeId from);
    void tell(const std::vector<wire::control::Member>& news, NodeId except);
    void heal(NodeId id, std::chrono::milliseconds pause_first, std::shared_ptr<Attempt> first = nullptr);
    [[nodiscard]] asio::awaitable<void> meet_again(std::shared_ptr<Healing> healing, NodeId id,
                                                   std::chrono::milliseconds next);
    [[nodiscard]] asio::awaitable<Result<Met>> meet_in_turn(NodeId id);
    void i_am(NodeId id, std::uint32_t generation);

    const Host host_;
    // The control thread's; outlive the conversations, which hold places in them.
    ClientIndexes clients_;
    Strangers strangers_;
    ExpectedLanes expected_lanes_;
    ControlThread thread_;
    Listener listener_;
    std::string address_;
    const KeyPair keys_;

    // From here on: the control thread's only.
    bool identity_known_ = false;
    wire::control::Cluster cluster_;
    wire::control::Certificate certificate_;  // mine
    std::set<Channel*> channels_;
    std::size_t meetings_ = 0;
    Members members_;
    std::map<NodeId, std::weak_ptr<Channel>> member_channels_;
    std::multiset<NodeId> opening_;                // members to which a meeting is being opened
    std::set<std::string> healing_at_;             // where meetings that heal are under way
    std::optional<asio::steady_timer> heal_room_;  // cancelled when one of them ends
    std::map<std::string, std::shared_ptr<Attempt>> attempts_;
    bool drops_all_ = false;  // the conversations end where they are, and nobody is told any more
    std::map<std::string, std::weak_ptr<PeerState>> by_address_;  // nodes of which this one is a client
    std::optional<Cookie> cookie_;
    Complaints complaints_;  // of strangers
};

// Counts itself in `count` for as long as it lives.
class Control::Counted {
public:
    explicit Counted(std::size_t& count) : count_(count) { ++count_; }
    ~Counted() { --count_; }
    Counted(const Counted&) = delete;

private:
    std::size_t& count_;
};

// Closes a channel when the time is up.
class Control::Deadline {
public:
    Deadline(asio::io_context& io, std::shared_ptr<Channel> channel) : timer_(io), channel_(std::move(channel)) {}
    void set(std::chrono::milliseconds time) { set(Clock::now() + time); }
    void set(TimePoint until) {
        timer_.expires_at(until);
        timer_.async_wait([channel = channel_, late = late_](asio::error_code error) {
            if (error) return;
            *late = true;
            channel->close();
        });
    }
    [[nodiscard]] bool passed() const { return *late_; }

private:
    asio::steady_timer timer_;
    std::shared_ptr<Channel> channel_;
    std::shared_ptr<bool> late_ = std::make_shared<bool>(false);
};

// A link that is destroyed under the engine's lock if the meeting fails on the way.
class PendingLink {
public:
    explicit PendingLink(LockedFabric& fabric) : fabric_(fabric) {}
    ~PendingLink() { drop(); }
    PendingLink(const PendingLink&) = delete;
    void set(std::unique_ptr<fabric::Link> link) { link_ = std::move(link); }
    void drop() {
        if (link_) fabric_.drop(std::move(link_));
    }
    explicit operator bool() const { return link_ != nullptr; }
    fabric::Link& operator*() { return *link_; }
    fabric::Link* operator->() { return link_.get(); }
    std::unique_ptr<fabric::Link> take() { return std::move(link_); }

private:
    LockedFabric& fabric_;
    std::unique_ptr<fabric::Link> link_;
};

// Any thread may hang up; who does it says why, and the other end is told.
[[nodiscard]] std::function<void(const Error&)> hang_up_of(std::shared_ptr<Gate> gate,
                                                           const std::shared_ptr<Channel>& channel);

// The keys of a stream's rings, out of what the welcome said.
[[nodiscard]] fabric::StreamKeys stream_keys(const wire::control::LaneSecret& secret, bool node);

}  // namespace rove::control
