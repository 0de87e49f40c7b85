// The control plane: who is there, and may they come in? It listens, meets other processes, keeps the list of members, and
// notices a peer's end. One thread; nothing of it is on the way of a call.
//
// A meeting, one line a message (CBOR maps; the connection's opener on the left):
//
//     {rove, nonce, role}                    ->
//                                            <-  {rove, nonce, proof}             the node proves the cookie …
//     {proof, triple, offer, id, listen}     ->                                   … and the opener does
//                                            <-  {id, you, count, members, resident, triple, offer} | {redirect} | {error}
//     {connected}                            ->                                   its lane to the node is open
//                                            <-  {connected}                      and the node's to it
//
// On a Unix socket the kernel tells the user, and the proofs are left empty. Membership: whoever is asked by a node that
// wants to join sends it on to the member with the lowest id that lives, which gives out ids one after the other; the new
// node then meets every member itself. A node that comes back at the same address gets its old id.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/basic_socket_acceptor.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "node/control/address.hpp"
#include "node/control/channel.hpp"
#include "node/core.hpp"

namespace rove::control {

// Meetings under way at once: what someone who only opens connections can hold.
inline constexpr std::size_t kMeetingsMax = 256;
inline constexpr unsigned kProtocolVersion = 2;

enum class Role : std::uint8_t { client, join, member };

class Control {
public:
    explicit Control(NodeCore& core);
    ~Control();
    Control(const Control&) = delete;

    // Listens; gives the address with its real port, or "" for an empty one. Others are met once identity_known() is called.
    [[nodiscard]] Result<std::string> listen(const std::string& address);
    void identity_known();
    // Becomes a member of the nodes of which one is at the address, and meets all of them.
    [[nodiscard]] Status join(const std::string& address);
    // Meets the node at the address; a peer given as `old` is brought back to life. From any thread but the control thread.
    [[nodiscard]] Result<std::shared_ptr<PeerState>> connect(const std::string& address,
                                                             std::shared_ptr<PeerState> old);
    void stop_accepting();
    void stop();  // ends every connection and the thread

private:
    struct Member {
        std::string address;
        enum class State : std::uint8_t { unused, joining, living, gone } state = State::unused;
    };
    struct Request {
        std::string address;
        Role role = Role::client;
        std::shared_ptr<PeerState> old;
    };
    struct Met {
        std::shared_ptr<PeerState> peer;  // null: redirected
        std::string redirect;
        std::vector<std::pair<NodeId, std::string>> members;
    };

    [[nodiscard]] asio::awaitable<Result<Met>> meet(Request request);
    [[nodiscard]] asio::awaitable<Result<Met>> meet_over(std::shared_ptr<Channel> channel, Request request,
                                                         const Address& address);
    [[nodiscard]] asio::awaitable<Status> join_all(std::string address);
    template <typename T>
    [[nodiscard]] Result<T> finish(asio::awaitable<Result<T>> work, std::string what);

    [[nodiscard]] asio::awaitable<void> accept_all();
    [[nodiscard]] asio::awaitable<void> receive_one(std::shared_ptr<Channel> channel);
    [[nodiscard]] asio::awaitable<Status> welcome(std::shared_ptr<Channel> channel);
    [[nodiscard]] asio::awaitable<Status> let_in(std::shared_ptr<Channel> channel, Role role, const Message& request);
    [[nodiscard]] Result<NodeId> give_id(Role role, const Message& request);
    [[nodiscard]] asio::awaitable<void> watch(std::shared_ptr<Channel> channel, std::shared_ptr<PeerState> peer);

    [[nodiscard]] bool cookie_needed(const Channel& channel, bool same_user) const;
    [[nodiscard]] Result<Cookie> cookie();
    [[nodiscard]] NodeId coordinator() const;
    void note_member(NodeId id, const std::string& address, Member::State state);
    [[nodiscard]] Message member_list() const;

    NodeCore& core_;
    asio::io_context io_{1};
    asio::executor_work_guard<asio::io_context::executor_type> keep_{io_.get_executor()};
    std::optional<asio::basic_socket_acceptor<asio::generic::stream_protocol>> acceptor_;
    std::string socket_path_;  // unlinked at the end
    std::string address_;
    // From here on: the control thread's only.
    bool identity_known_ = false;
    std::size_t meetings_ = 0;
    std::vector<Member> members_;
    std::vector<bool> clients_;  // indices given out
    std::optional<Cookie> cookie_;
    std::vector<std::weak_ptr<Channel>> channels_;
    std::thread thread_;
};

}  // namespace rove::control
