#include "control/own_identity.hpp"

namespace rove::control {

using wire::control::Member;

void OwnIdentity::begin_cluster(NodeId id) {
    cluster_.emplace();
    certificate_ = {.id = id, .generation = 1, .signature = {}};
    certificate_.signature = certify(as_member()).signature;
}

void OwnIdentity::join_cluster(const wire::control::KeySeed& cluster, const wire::control::Certificate& certificate) {
    cluster_.emplace(cluster);
    certificate_ = certificate;
}

Member OwnIdentity::as_member() const {
    return {.id = certificate_.id,
            .generation = certificate_.generation,
            .address = address_,
            .key = keys_.key(),
            .signature = certificate_.signature};
}

Member OwnIdentity::certify(Member member) const {
    member.signature = cluster_->sign(statement(member));
    return member;
}

bool OwnIdentity::is_certified(const Member& member) const {
    return signed_by(cluster_->key(), statement(member), member.signature);
}

}  // namespace rove::control
