#include "control/own_identity.hpp"

namespace rove::control {

wire::control::Certificate OwnIdentity::certify(NodeId id, const MemberEntry& entry, NodeId issuer) const {
    wire::control::Certificate certificate{
        .id = id, .generation = entry.generation, .issuer = issuer, .cluster = cluster_, .signature = {}};
    certificate.signature = keys_.sign(wire::control::statement(certificate, entry.address, entry.key));
    return certificate;
}

}  // namespace rove::control
