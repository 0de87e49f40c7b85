// A membership beside an engine's peers, with no thread and no sockets of a node: for parts of a control plane by themselves. Conversations run
// while a test lets them.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <asio/co_spawn.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../node/answering_parts.hpp"
#include "control/control_thread.hpp"
#include "control/membership.hpp"

namespace rove::test {

// The one engine whose fabric and peers these are.
class OneEngine final : public control::Engines {
public:
    OneEngine(LockedFabric& fabric, Peers& peers) : fabric_(fabric), peers_(peers) {}
    control::ChosenEngine choose(const PeerState* /*old*/, NodeId /*member*/) override {
        return {.fabric = &fabric_, .peers = &peers_};
    }
    void release(const control::ChosenEngine& /*chosen*/) noexcept override {}
    Result<Peers::Adopted> adopt(const control::ChosenEngine& /*by*/, Meeting meeting,
                                 std::unique_ptr<fabric::Link>& link, std::shared_ptr<PeerState> old) override {
        return peers_.adopt(std::move(meeting), std::move(link), std::move(old));
    }
    [[nodiscard]] bool linked(const PeerState& peer) const override { return peers_.linked(peer); }
    void lose(const std::shared_ptr<PeerState>& peer, std::uint64_t meeting, Error why) override {
        peers_.lose(peer, meeting, std::move(why));
    }
    void member_expected(NodeId member, const AbsentMembers::Process& process, const std::string& why) override {
        peers_.member_expected(member, process, why);
    }
    void member_gone(NodeId member, const std::string& why) override { peers_.member_gone(member, why); }

private:
    LockedFabric& fabric_;
    Peers& peers_;
};

class ControlParts : public AnsweringParts {
protected:
    using State = control::MemberEntry::State;
    using Trust = control::MemberEntry::Trust;

    // A control connection, and a link with it.
    struct Linked {
        std::shared_ptr<control::Channel> channel;
        Peers::Adopted adopted;
        std::unique_ptr<fabric::Link> far;  // the peer's end of the link
        int socket = -1;                    // and of the connection
    };

    ~ControlParts() override {
        for (const int each : sockets_) ::close(each);
        thread_.drop();
    }

    static std::string address_of(NodeId id) { return "127.0.0.1:" + std::to_string(7000 + id); }
    static wire::control::Member member(NodeId id) {
        wire::control::Member member{.id = id, .generation = 1, .address = address_of(id), .key = {}};
        member.key.bytes.fill(static_cast<std::uint8_t>(id + 1));
        return member;
    }
    // The same, with a certificate of this node's cluster.
    [[nodiscard]] wire::control::Member certified(NodeId id) const { return self_.certify(member(id)); }
    // This node is that one, the first of its cluster.
    void begin_as(NodeId id) {
        neighbours_.ids.set_identity(id, id + 1);
        self_.listens_at(address_of(id));
        membership_.begin_cluster();
    }
    // As when two have met. `id`: a member's, or a client's.
    Linked link_with(NodeId id) {
        int ends[2] = {-1, -1};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        sockets_.push_back(ends[1]);
        const bool is_member = !is_client(id);
        auto [link, far] = neighbours_.open();
        Meeting meeting{.peer = {.id = id,
                                 .my_id = neighbours_.routes.id(),
                                 .member = is_member,
                                 .address = is_member ? address_of(id) : std::string(),
                                 .triple = "x86_64-linux-gnu",
                                 .node_count = 4},
                        .resident = {}};
        return {.channel = std::make_shared<control::Channel>(
                    control::Socket(thread_.io(), asio::generic::stream_protocol(AF_UNIX, 0), ends[0]), open_),
                .adopted = value_or_throw(peers_.adopt(std::move(meeting), std::move(link), nullptr)),
                .far = std::move(far),
                .socket = ends[1]};
    }
    // The same with a member whose certificate was checked. joins: by that meeting it has become one.
    Linked meet(NodeId id, bool joins = false) {
        Linked linked = link_with(id);
        membership_.met(id, linked.adopted, linked.channel, membership_.admit(certified(id)), joins);
        return linked;
    }
    // Of the members whom the other end of the connection was told about since the last time.
    static std::vector<NodeId> told(const Linked& to) {
        std::vector<NodeId> ids;
        for (std::uint32_t size = 0; ::recv(to.socket, &size, sizeof size, MSG_DONTWAIT) == sizeof size;) {
            ByteBuffer body(size);
            EXPECT_EQ(::recv(to.socket, body.data(), size, MSG_DONTWAIT), static_cast<ssize_t>(size));
            const auto members = wire::control::decode<wire::control::Members>(body);
            EXPECT_TRUE(members);
            for (std::size_t i = 0; members && i < members->members.size(); ++i) ids.push_back(members->members[i].id);
        }
        return ids;
    }
    State state_of(NodeId id) {
        const control::MemberEntry* entry = members_.find(id);
        return entry != nullptr ? entry->state : State::unused;
    }
    // The result of a conversation, which ends without anybody else's doing.
    template <typename Value>
    Value run(asio::awaitable<Value> conversation) {
        std::optional<Value> result;
        asio::co_spawn(thread_.io(), std::move(conversation), [&result](const std::exception_ptr& failed, Value value) {
            EXPECT_FALSE(failed);
            result.emplace(std::move(value));
        });
        while (!result) thread_.io().run_one();
        return std::move(*result);
    }

    LockedFabric fabric_{idle_.lead, neighbours_.fabric()};
    OneEngine engines_{fabric_, peers_};
    std::set<control::Channel*> open_;
    control::ControlThread thread_{&IdleLead::name};  // never started
    std::vector<int> sockets_;
    control::OwnIdentity self_;
    control::Members members_;
    std::vector<NodeId> met_again_;
    control::Membership membership_{{.self = self_,
                                     .members = members_,
                                     .ids = neighbours_.ids,
                                     .engines = engines_,
                                     .name = &IdleLead::name,
                                     .meet_again = [this](NodeId id) { met_again_.push_back(id); }}};
};

}  // namespace rove::test
