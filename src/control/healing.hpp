// Healing: meets members to which this node has no link, those that it has lost and those that were only named to it, until they are met or
// known to have ended. docs/meeting.md, "Members", has the rules.
//
// Threads: the control thread's.
//
// Invariants: at most one conversation for each member (MemberEntry::healing), kHealingMax concurrent meetings, and one for each address.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/result.hpp"
#include "control/control_thread.hpp"
#include "control/members.hpp"
#include "peer/complaints.hpp"
#include "peer/node_ids.hpp"

namespace rove::control {

// Pauses between the attempts to meet a member again.
inline constexpr std::chrono::milliseconds kHealPauseMin{50}, kHealPauseMax{5000};
// Concurrent meetings that heal the cluster, each to another address: a descriptor and a meeting's memory each. Others wait.
inline constexpr std::size_t kHealingMax = 32;
// Attempts to meet a member that was only named to this node: with the pauses 16 s or more.
inline constexpr unsigned kToldTriesMax = 10;
// Counted from the first failed attempt, pauses included: a member that does not answer for this long is considered to have ended. If it
// lives, it meets this node itself, and its key is known.
inline constexpr auto kHealTimeMax = std::chrono::minutes(10);
// The member with the lower id leaves the first attempt to the other one.
inline constexpr std::chrono::milliseconds kHealDeference{250};

class Healing {
public:
    // The other parts of the control plane that it uses. They outlive it.
    struct Beside {
        ControlThread& thread;
        Members& members;
        const NodeIds& ids;
        std::function<std::string()> name;                    // this node's name, for messages
        std::function<asio::awaitable<Status>(NodeId)> meet;  // one attempt
        std::function<void(NodeId, const wire::control::PublicKey&, const std::string& why)> give_up;
    };
    // The first attempt to meet a member, for a conversation that waits for it.
    struct FirstTry {
        explicit FirstTry(asio::io_context& io) : ended(io, asio::steady_timer::time_point::max()) {}
        asio::steady_timer ended;  // cancelled when it is over
        bool is_over = false;
    };

    explicit Healing(Beside beside)
        : thread_(beside.thread),
          members_(beside.members),
          ids_(beside.ids),
          name_(std::move(beside.name)),
          meet_(std::move(beside.meet)),
          give_up_(std::move(beside.give_up)),
          room_(std::in_place, thread_.io(), asio::steady_timer::time_point::max()) {}
    Healing(const Healing&) = delete;

    // Begins, unless it has begun already: at once, or after kHealDeference, in which the member is expected to meet this node itself.
    void begin(NodeId id);
    // The same, at once. `first` is over when the first attempt is, or if there will be none.
    void begin_at_once(NodeId id, std::shared_ptr<FirstTry> first);
    void drop() { room_.reset(); }  // before the thread's io_context is destroyed

private:
    class OfMember;
    class Place;

    void begin_after(std::chrono::milliseconds pause, NodeId id, std::shared_ptr<FirstTry> first);
    [[nodiscard]] asio::awaitable<void> meet_again(std::shared_ptr<OfMember> healing, NodeId id,
                                                   std::chrono::milliseconds next);
    [[nodiscard]] asio::awaitable<Status> meet_in_turn(NodeId id);

    ControlThread& thread_;
    Members& members_;
    const NodeIds& ids_;
    const std::function<std::string()> name_;
    const std::function<asio::awaitable<Status>(NodeId)> meet_;
    const std::function<void(NodeId, const wire::control::PublicKey&, const std::string&)> give_up_;
    Complaints complaints_;                   // limited, because members can name others without bound
    std::set<std::string> at_;                // the addresses of the meetings in progress
    std::optional<asio::steady_timer> room_;  // cancelled when one of them ends
};

}  // namespace rove::control
