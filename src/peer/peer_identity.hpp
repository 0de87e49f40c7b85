// PeerIdentity: who a peer is, as both ends said when they met. A meeting replaces it as a whole.
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <string>

#include "base/ids.hpp"
#include "wire/control.hpp"

namespace rove {

struct PeerIdentity {
    NodeId id = kNoNode;                 // the peer's
    NodeId my_id = kNoNode;              // this node's, as the peer knows it
    bool member = false;                 // it joined: calls may be sent on to it
    wire::control::PublicKey process{};  // of a member: which of the processes that have had this id it is
    std::string address;                 // where to reach it again; empty for a client
    std::string triple;                  // the machine that it needs code for
    std::uint32_t node_count = 1;        // of the nodes that joined one another there
    bool has_residents = false;  // its program has functions of its own: what this node calls may be there already
    std::uint32_t features = 0;  // that both ends have: wire::kFeatures
};

}  // namespace rove
