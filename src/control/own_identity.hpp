// OwnIdentity: what this node shows to members so that they know which member it is: its address, its key and its certificate; and the key
// of its cluster, with which certificates are signed and checked. Only the members of a cluster have that key: the one that admits a process
// gives it to the process.
//
// Threads: listens_at() before others are met; all else on the control thread.
//
// Invariant: the node's own key never changes. The cluster's key and the certificate are set when is_member() begins to hold.
#pragma once

#include <optional>
#include <string>

#include "control/identity.hpp"
#include "wire/control.hpp"

namespace rove::control {

class OwnIdentity {
public:
    OwnIdentity() = default;
    OwnIdentity(const OwnIdentity&) = delete;

    void listens_at(std::string address) { address_ = std::move(address); }
    // Empty: the node listens nowhere, and is a client.
    [[nodiscard]] const std::string& address() const { return address_; }
    [[nodiscard]] const KeyPair& keys() const { return keys_; }

    // This node is the first one of a new cluster, with that id, or a member of the cluster with that key.
    void begin_cluster(NodeId id);
    void join_cluster(const wire::control::KeySeed& cluster, const wire::control::Certificate& certificate);
    // Whether the node has an id in a cluster.
    [[nodiscard]] bool is_member() const { return cluster_.has_value(); }

    // ---- precondition of all below: is_member()
    [[nodiscard]] wire::control::KeySeed cluster() const { return cluster_->seed(); }
    [[nodiscard]] const wire::control::Certificate& certificate() const { return certificate_; }
    // This node, as it is described to others.
    [[nodiscard]] wire::control::Member as_member() const;
    // The same member, with the cluster's signature.
    [[nodiscard]] wire::control::Member certify(wire::control::Member member) const;
    // Whether its signature is this cluster's.
    [[nodiscard]] bool is_certified(const wire::control::Member& member) const;

private:
    std::string address_;
    const KeyPair keys_;
    std::optional<KeyPair> cluster_;
    wire::control::Certificate certificate_;
};

}  // namespace rove::control
