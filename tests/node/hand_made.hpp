// Frames as a peer may write them that keeps to no rule. Only for nodes without a thread of their own, between calls.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "node/offload.hpp"
#include "node/peer_state.hpp"
#include "rove/rove.hpp"

namespace rove::test {

template <typename T>
Bytes raw(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

// False: the mailbox has no room now.
inline bool try_write_frame(const Peer& peer, fabric::Traffic traffic, wire::FrameHeader header, Bytes extra,
                            Bytes payload = {}) {
    PeerState& state = *detail::Edge::state(peer);
    if (header.node == kNoNode) header.node = state.my_id;
    header.extra_bytes = static_cast<std::uint16_t>(extra.size());
    header.body_bytes = static_cast<std::uint32_t>(extra.size() + payload.size());
    std::byte* frame = state.link->reserve(traffic, wire::kHeaderBytes + header.body_bytes);
    if (frame == nullptr) return false;
    std::copy(extra.begin(), extra.end(), frame + wire::kHeaderBytes);
    std::copy(payload.begin(), payload.end(), frame + wire::kHeaderBytes + extra.size());
    state.link->publish(traffic, header);
    return true;
}

inline void write_frame(const Peer& peer, fabric::Traffic traffic, wire::FrameHeader header, Bytes extra,
                        Bytes payload = {}) {
    ASSERT_TRUE(try_write_frame(peer, traffic, header, extra, payload)) << "the mailbox is full";
}

}  // namespace rove::test
