// OwnIdentity: what this node shows to members so that they know which member it is: its address, its key, its cluster and its
// certificate.
//
// Threads: listens_at() before others are met; all else on the control thread.
//
// Invariant: the key never changes. Cluster and certificate are set before is_member() holds, except those of a cluster's first node, which
// signs its own certificate in the same step.
#pragma once

#include <string>

#include "control/identity.hpp"
#include "control/members.hpp"

namespace rove::control {

class OwnIdentity {
public:
    OwnIdentity() = default;
    OwnIdentity(const OwnIdentity&) = delete;

    void listens_at(std::string address) { address_ = std::move(address); }
    // Empty: the node listens nowhere, and is a client.
    [[nodiscard]] const std::string& address() const { return address_; }
    [[nodiscard]] const KeyPair& keys() const { return keys_; }

    // The cluster is known before the id: others may come and ask for the node while it joins.
    void set_cluster(const wire::control::Cluster& cluster) { cluster_ = cluster; }
    [[nodiscard]] const wire::control::Cluster& cluster() const { return cluster_; }
    void set_certificate(const wire::control::Certificate& certificate) { certificate_ = certificate; }
    [[nodiscard]] const wire::control::Certificate& certificate() const { return certificate_; }
    void set_member() { is_member_ = true; }
    // The node has an id in a cluster.
    [[nodiscard]] bool is_member() const { return is_member_; }

    // Signs that the process with that entry's key and address has the id. `issuer`: this node's id.
    [[nodiscard]] wire::control::Certificate certify(NodeId id, const MemberEntry& entry, NodeId issuer) const;

private:
    std::string address_;
    const KeyPair keys_;
    wire::control::Cluster cluster_;
    wire::control::Certificate certificate_;
    bool is_member_ = false;
};

}  // namespace rove::control
