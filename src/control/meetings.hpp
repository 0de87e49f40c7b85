// Meetings: which meetings this node opens, and how often it tries. Threads and conversations that want one meeting share it; an existing
// link, or a meeting that the other member has opened, is used instead. One attempt is an Opening.
//
// Threads: the control thread's.
//
// Invariants: of the meetings that are shared, one is in progress for each key (the member, the address, or the old peer), and `attempts_`
// lists it until it has ended. Then all that wait for it get its result, even if memory ran out.
#pragma once

#include <asio/awaitable.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/result.hpp"
#include "control/opening.hpp"
#include "control/servers.hpp"

namespace rove::control {

class Meetings {
public:
    explicit Meetings(const Opening::Beside& beside) : beside_(beside) {}
    Meetings(const Meetings&) = delete;

    // The node at the address, met if there is no link to it. A peer given as `old` gets the new link.
    [[nodiscard]] asio::awaitable<Result<std::shared_ptr<PeerState>>> reach(std::string address, Endpoints endpoints,
                                                                            std::shared_ptr<PeerState> old);
    // Meets a node as one member meets another; a `probe` only checks whether that member lives. Shared with others that want the same.
    [[nodiscard]] asio::awaitable<Status> meet_member(NodeId id, bool probe);
    // Tries until it succeeds, the other end answers, or the time for a meeting is over. Not shared.
    [[nodiscard]] asio::awaitable<Result<Met>> meet(Wanted wanted);
    // Whether a meeting with that member is being opened.
    [[nodiscard]] bool is_opening(NodeId member) const { return opening_.contains(member); }

    // Called before the thread's io_context is destroyed: conversations end where they wait, and those that wait for them are not woken.
    void drop();

private:
    // A meeting in progress for which others may wait.
    struct Attempt {
        explicit Attempt(asio::io_context& io) : ended(io, asio::steady_timer::time_point::max()) {}
        asio::steady_timer ended;
        std::optional<Result<Met>> result;
    };
    class AttemptUnderWay;

    [[nodiscard]] asio::awaitable<Result<bool>> answers_there(NodeId id);
    [[nodiscard]] asio::awaitable<Result<Met>> share(std::string key, Wanted wanted);
    // The member, if there is a link to it.
    [[nodiscard]] std::optional<Met> linked_to(NodeId member);
    // Whether the member is opening a meeting with this node now.
    [[nodiscard]] bool comes(NodeId member);

    const Opening::Beside beside_;
    Servers servers_;
    std::multiset<NodeId> opening_;  // members to which a meeting is being opened
    std::map<std::string, std::shared_ptr<Attempt>> attempts_;
    bool drops_all_ = false;
};

}  // namespace rove::control
