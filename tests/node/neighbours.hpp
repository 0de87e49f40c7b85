// Peers of a node that has nothing else: each has a loopback link, whose other end the test reads. For parts of a node by themselves.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "fabric/loopback/loopback.hpp"
#include "met_peer.hpp"
#include "peer/absent_members.hpp"
#include "peer/complaints.hpp"
#include "peer/peer_state.hpp"
#include "peer/routes.hpp"
#include "peer/sender.hpp"

namespace rove::test {

// A loopback fabric that counts its links, and has streams where a test says so: each is a link that goes nowhere yet.
class CountedFabric final : public fabric::LoopbackFabric {
public:
    explicit CountedFabric(std::shared_ptr<fabric::Exchange> exchange)
        : LoopbackFabric(std::move(exchange), value_or_throw(fabric::Bell::open())) {}
    [[nodiscard]] bool has_streams() const override { return streams; }
    [[nodiscard]] Result<std::unique_ptr<fabric::Link>> open_stream(int socket,
                                                                    const fabric::StreamKeys& /*keys*/) override {
        ::close(socket);
        return open_link();
    }
    [[nodiscard]] std::size_t links() const { return links_.size(); }
    bool streams = false;
};

class Neighbours {
public:
    // A frame that the peer has received.
    struct Received {
        wire::FrameHeader header;
        ByteBuffer extra, payload;
    };

    // This node is that one of `node_count`.
    explicit Neighbours(NodeId id = 0, std::uint32_t node_count = 4) { ids.set_identity(id, node_count); }

    // A peer that has just been met: a member, a client of this node, or, where this node has the id of a client there, another cluster's node.
    PeerState& add(NodeId id, NodeId my_id = kNoNode) { return add(identity_of(id, my_id)); }
    PeerState& add(PeerIdentity as) {
        auto [link, far] = open();
        PeerState& peer = add(std::move(as), std::move(link));
        far_[&peer] = std::move(far);
        return peer;
    }
    // The same by a link of the test's own.
    PeerState& add(PeerIdentity as, std::shared_ptr<fabric::Link> link, PeerState::HangUp hang_up = {}) {
        peers.add(std::make_shared<PeerState>(sender.waiting_bytes()));
        PeerState& peer = *peers[peers.size() - 1];
        const NodeId name = routes.name_for(as, peer.back());
        meet(peer, std::move(as), name, std::move(link), std::move(hang_up));
        peers.warm().add(peer);
        routes.enter(peer);
        return peer;
    }
    // Who such a peer is, unless the test has it otherwise.
    [[nodiscard]] PeerIdentity identity_of(NodeId id, NodeId my_id = kNoNode) const {
        if (my_id == kNoNode) my_id = routes.id();
        return {.id = id,
                .my_id = my_id,
                .member = !is_client(id) && !is_client(my_id),
                .triple = "x86_64-linux-gnu",
                .features = wire::kFeatures};
    }
    // Both ends of a link: this node's, and a peer's.
    std::pair<std::unique_ptr<fabric::Link>, std::unique_ptr<fabric::Link>> open() {
        auto link = value_or_throw(ours_->open_link());
        auto far = value_or_throw(theirs_->open_link());
        value_or_throw(link->connect(far->offer()));
        value_or_throw(far->connect(link->offer()));
        return {std::move(link), std::move(far)};
    }
    // The frames that the peer has received since the last call.
    std::vector<Received> received_by(const PeerState& peer, fabric::Traffic traffic = fabric::Traffic::prompt) {
        return received_at(*far_.at(&peer), traffic);
    }
    // The same at a peer's end.
    static std::vector<Received> received_at(fabric::Link& link, fabric::Traffic traffic = fabric::Traffic::prompt) {
        std::vector<Received> all;
        for (wire::Frame frame; link.next(traffic, frame); link.release(traffic))
            all.push_back(
                {frame.header, {frame.extra.begin(), frame.extra.end()}, {frame.payload.begin(), frame.payload.end()}});
        return all;
    }
    // Sends a frame from the peer to this node.
    void send_from(const PeerState& peer, fabric::Traffic traffic, wire::FrameHeader header, Bytes payload,
                   Bytes extra = {}) {
        fabric::Link& link = *far_.at(&peer);
        header.extra_bytes = static_cast<std::uint16_t>(extra.size());
        header.body_bytes = static_cast<std::uint32_t>(extra.size() + payload.size());
        std::byte* const frame = link.reserve(traffic, wire::kHeaderBytes + header.body_bytes);
        ASSERT_NE(frame, nullptr);
        std::copy(extra.begin(), extra.end(), frame + wire::kHeaderBytes);
        std::copy(payload.begin(), payload.end(), frame + wire::kHeaderBytes + extra.size());
        link.publish(traffic, header);
    }
    // The lines of the peer's frames that this node has released.
    std::uint64_t lines_given_back_to(const PeerState& peer, fabric::Traffic traffic) {
        return far_.at(&peer)->lines_credited(traffic);
    }

    // This node's end of all links, and the peers'.
    const std::unique_ptr<fabric::Fabric>& fabric() { return ours_; }
    CountedFabric& counted_fabric() { return static_cast<CountedFabric&>(*ours_); }
    fabric::Fabric& far_fabric() { return *theirs_; }

private:
    std::shared_ptr<fabric::Exchange> exchange_ = std::make_shared<fabric::Exchange>();
    const std::unique_ptr<fabric::Fabric> ours_ = std::make_unique<CountedFabric>(exchange_),
                                          theirs_ = std::make_unique<CountedFabric>(exchange_);

public:
    PeerList peers;
    NodeIds ids;
    BetweenEngines between{1};
    const OtherEngines others{between, 0};
    Routes routes{ids, others};
    AbsentMembers absent;
    Complaints complaints;
    unsigned woken = 0;  // how often the leader was
    Sender sender{{.peers = peers,
                   .routes = routes,
                   .others = others,
                   .absent = absent,
                   .complaints = complaints,
                   .name = [] { return std::string("node 0"); },
                   .wake = [this] { ++woken; }}};

private:
    std::map<const PeerState*, std::unique_ptr<fabric::Link>> far_;
};

}  // namespace rove::test
