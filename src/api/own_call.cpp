// Calls of functions of this program: what the templates of rove/detail/offload.hpp begin.
#include "api/access.hpp"
#include "peer/names.hpp"
#include "program/callables.hpp"

namespace rove::detail {

rove_pending begin_call(const Peer& peer, const Callable& callable, std::span<const rove_piece> payload,
                        HowToCall how) {
    Callee callee{.id = &callable.resident, .name = callable.name, .own = true, .schema = callable.schema};
    Engine& engine = usable(Inside::core(peer).get(), Inside::state(peer).get());
    const Callable::Code& code = *value_or_throw(complete(callee, callable));
    // If the peer's program has no functions that it could run instead, the call fails without asking the peer.
    if (callee.shipped == nullptr && (how.exactly || !Inside::state(peer)->has_residents()))
        throw Error(ErrorCode::unsupported,
                    callable.name + " cannot be sent to " + who(peer.node(), peer.address()) + ": " + code.why_not);
    if (how.exactly) callee = {.id = callee.shipped, .package = callee.package, .name = callee.name};
    const Outgoing outgoing = outgoing_within(how.limits, callee, Pieces(payload), how.reply);
    return pending_of(engine, value_or_throw(engine.caller().call(Inside::state(peer), outgoing)));
}

}  // namespace rove::detail
