// Healing: meets members that this node has no link to, those that it has lost and those that it was only told of, until they are met or
// known to be gone. docs/meeting.md, "Members", has the rules.
//
// Threads: the control thread's.
//
// Invariants: at most one conversation for each member (MemberEntry::healing), kHealingMax meetings at once, and one for each address.
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
// Meetings at once that heal the cluster, each to another address: a descriptor and a meeting's memory each. Others wait.
inline constexpr std::size_t kHealingMax = 32;
// Tries to meet a member that this node was only told of: with the pauses 16 s or more.
inline constexpr unsigned kToldTriesMax = 10;
// From the first failed try on, pauses included: a member that does not answer for that long is taken for gone. If it lives it
// comes by itself, and its key is known.
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
        std::function<std::string()> name;                    // of this node, for messages
        std::function<asio::awaitable<Status>(NodeId)> meet;  // one attempt
        std::function<void(NodeId, const wire::control::PublicKey&, const std::string& why)> give_up;
    };
    // The first attempt to meet a member, for somebody who waits for it.
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

    // Begins, where this is not under way: at once, or after kHealDeference, in which the member is expected to come by itself.
    void begin(NodeId id);
    // The same, at once. `first` is over when the first attempt is, or if there will be none.
    void begin_at_once(NodeId id, std::shared_ptr<FirstTry> first);
    void drop() { room_.reset(); }  // before the thread's io_context goes

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
    Complaints complaints_;                   // members name others as they like
    std::set<std::string> at_;                // where meetings that heal are under way
    std::optional<asio::steady_timer> room_;  // cancelled when one of them ends
};

}  // namespace rove::control
