#include "peer/frame_checks.hpp"

#include "peer/names.hpp"

namespace rove {

using fabric::Traffic;

std::optional<Error> FrameChecks::wrong_with(const PeerState& from, const wire::Frame& frame, Traffic among) const {
    const wire::FrameHeader& header = frame.header;
    const auto wrong = [&](std::string_view what) REQUIRES(lock_of<EngineLock>) {
        const auto index = static_cast<std::size_t>(header.kind);
        return Error(ErrorCode::invalid,
                     fmt::format("{} sent {} {}", who(from),
                                 index < wire::kKindRules.size() ? wire::kKindRules[index].name : "a frame", what));
    };
    if (const std::string_view shape = wire::wrong_shape(frame, among == Traffic::calls, from.identity().features);
        !shape.empty())
        return wrong(shape);
    const bool fellow = from.is_fellow();
    const bool known = home_of(header.node) < std::max(1U, routes_.node_count());
    const wire::KindRule& rule = wire::rule_of(header.kind);
    switch (rule.names) {
        case wire::Names::caller:
            if (header.node != from.id() && !(fellow && known)) return wrong("that names another caller");
            break;
        case wire::Names::sender:
            if (header.node != from.id()) return wrong("that names another caller");
            break;
        case wire::Names::receiver:
            if (among == Traffic::replies && header.node != from.my_id() && !fellow)
                return wrong("to somebody else's call");
            break;
        case wire::Names::anybody: break;
    }
    // Only members pass on others' code. They are not to blame for what is wrong with it, so nobody else may say so.
    if (rule.hops == wire::Hops::passed_on && header.hops != 0 && !fellow) return wrong("as another's");
    // A client is sent no code, whoever asks for that.
    if (rule.brings_code && rule.routed != wire::Routed::no && is_client(header.node) && header.node != from.my_id())
        return wrong("to a client");
    if (wire::brings_code(header) && !takes_code(from)) return wrong("but a client takes none");
    return std::nullopt;
}

// A client runs what its own program has; so does a node on a link by which it is a client of others.
bool FrameChecks::takes_code(const PeerState& from) const {
    return !options_.listen.empty() && !is_client(from.my_id());
}

}  // namespace rove
