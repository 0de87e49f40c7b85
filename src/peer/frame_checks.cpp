#include "peer/frame_checks.hpp"

#include "peer/names.hpp"

namespace rove {

using fabric::Traffic;

Error FrameChecks::error_of(const PeerState& from, const wire::Frame& frame, std::string_view fault) {
    const auto index = static_cast<std::size_t>(frame.header.kind);
    return {ErrorCode::invalid,
            fmt::format("{} sent {} {}", who(from),
                        index < wire::kKindRules.size() ? wire::kKindRules[index].name : "a frame", fault)};
}

std::string_view FrameChecks::fault_of(const PeerState& from, const wire::Frame& frame, Traffic among) const {
    const wire::FrameHeader& header = frame.header;
    if (const std::string_view shape = wire::wrong_shape(frame, among == Traffic::calls, from.identity().features);
        !shape.empty())
        return shape;
    const auto names_known = [&] { return home_of(header.node) < std::max(1U, routes_.node_count()); };
    const wire::KindRule& rule = wire::rule_of(header.kind);
    switch (rule.names) {
        case wire::Names::caller:
            if (header.node != from.id() && !(from.is_fellow() && names_known())) return "that names another caller";
            break;
        case wire::Names::sender:
            if (header.node != from.id()) return "that names another caller";
            break;
        case wire::Names::receiver:
            if (among == Traffic::prompt && header.node != from.my_id() && !from.is_fellow())
                return "to somebody else's call";
            break;
        case wire::Names::anybody: break;
    }
    // Only members pass on others' code. They are not to blame for what is wrong with it, so nobody else may say so.
    if (rule.hops == wire::Hops::passed_on && header.hops != 0 && !from.is_fellow()) return "as another's";
    // A client is sent no code, whoever asks for that.
    if (rule.brings_code && rule.routed != wire::Routed::no && is_client(header.node) && header.node != from.my_id())
        return "to a client";
    if (wire::brings_code(header) && !takes_code(from)) return "but a client takes none";
    return {};
}

// A client runs what its own program has; so does a node on a link by which it is a client of others.
bool FrameChecks::takes_code(const PeerState& from) const {
    return !options_.listen.empty() && !is_client(from.my_id());
}

}  // namespace rove
