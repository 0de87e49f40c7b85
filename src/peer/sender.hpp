// Sender: puts frames into peers' mailboxes, or into their outboxes where a mailbox has no room or frames wait already, and finds the way
// of frames for other nodes.
//
// Threads: under the engine's lock.
//
// Invariants: the frames of one traffic reach a peer in the order in which they were sent. What waits for all peers together is at most
// kAllOutboxBytesMax. A call that was sent on is among CallsSent::sent_on from then until it is answered.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lead/engine_lock.hpp"
#include "peer/absent_members.hpp"
#include "peer/complaints.hpp"
#include "peer/peer_list.hpp"
#include "peer/peer_state.hpp"
#include "peer/routes.hpp"

namespace rove {

class Sender {
public:
    // The parts of the node that this one uses. They outlive it.
    struct Beside {
        const PeerList& peers;
        const Routes& routes;
        const OtherEngines& others;
        AbsentMembers& absent;
        Complaints& complaints;
        std::function<std::string()> name;  // of this node, for messages
        std::function<void()> wake;         // the leader: a frame waits that it is to send
    };
    explicit Sender(Beside beside)
        : peers_(beside.peers),
          routes_(beside.routes),
          others_(beside.others),
          absent_(beside.absent),
          complaints_(beside.complaints),
          name_(std::move(beside.name)),
          wake_(std::move(beside.wake)) {}

    // Bytes of frames that wait for room, to all peers: for the outboxes of each peer, which count them.
    [[nodiscard]] std::size_t& waiting_bytes() REQUIRES(lock_of<EngineLock>) { return waiting_bytes_; }

    // header: all but the sizes. disconnected: its link has ended. overloaded: as much waits for the peer as may. Then nothing was sent.
    [[nodiscard]] Status send(PeerState& peer, fabric::Traffic traffic, wire::FrameHeader header, Bytes extra,
                              Bytes payload) REQUIRES(lock_of<EngineLock>);
    // In the prompt ring, for what must not be lost as long as the peer lives: cuts off a peer that does not take it. False: it was not sent.
    bool send_or_cut(PeerState& peer, const wire::FrameHeader& header, Bytes extra, Bytes payload) noexcept
        REQUIRES(lock_of<EngineLock>);
    // Sends what waits, as far as there is room. Returns how many frames that were.
    unsigned flush(PeerState& peer) REQUIRES(lock_of<EngineLock>);
    // Sends a frame on its way to another node, or leaves it to the engine that has a link there. Replies for a member without a link are kept
    // until it is met again; what has no way is lost.
    // next_engine: an answer for a node that was never met is left to engines from that one on.
    void route(const wire::Frame& frame, unsigned next_engine = 0) noexcept REQUIRES(lock_of<EngineLock>);
    // The reply to a call that was sent on, which came from the peer.
    void pass_reply_on(PeerState& from, const wire::Frame& reply) REQUIRES(lock_of<EngineLock>);
    // The call was answered, by whomever it was sent on to last, over whatever link: also to other engines' peers.
    void forget_sent_on(const wire::FrameHeader& call) REQUIRES(lock_of<EngineLock>);
    // The same, where another engine has said so.
    void forget_sent_on_here(const wire::FrameHeader& call) REQUIRES(lock_of<EngineLock>);
    // Why a member cannot be reached.
    [[nodiscard]] Error absent(NodeId node) const REQUIRES(lock_of<EngineLock>);

private:
    void cut_whom_most_waits_for(std::size_t more) REQUIRES(lock_of<EngineLock>);
    void remember_sent_on(PeerState& peer, const wire::FrameHeader& header, std::uint64_t position) const
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool route_downwards(const wire::Frame& frame, unsigned next_engine) REQUIRES(lock_of<EngineLock>);

    const PeerList& peers_;
    const Routes& routes_;
    const OtherEngines& others_;
    AbsentMembers& absent_;
    Complaints& complaints_;
    const std::function<std::string()> name_;
    const std::function<void()> wake_;
    std::size_t waiting_bytes_ GUARDED_BY(lock_of<EngineLock>) = 0;
};

}  // namespace rove
