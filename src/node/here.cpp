#include "engine/here.hpp"

#include <pthread.h>

#include "base/log.hpp"
#include "node/core.hpp"
#include "node/host_symbols.hpp"
#include "node/library_names.hpp"
#include "peer/begun_call.hpp"
#include "rove/edge.h"

using rove::Bytes;
using rove::ErrorCode;
using rove::Status;

namespace {

[[noreturn]] void end_thread_of_c(int result) {
    rove::Engine::exit_thread(reinterpret_cast<void*>(static_cast<std::intptr_t>(result)));  // as the C library does
}

// A function must not detach the thread that runs it, because the thread's owner joins it.
int detach_thread(pthread_t thread) {
    if (rove::ThreadRuns::is_in_function() && pthread_equal(thread, pthread_self()) != 0) return 0;
    return pthread_detach(thread);
}

Bytes bytes_of(const void* data, std::size_t size) {
    return {static_cast<const std::byte*>(data), size};
}

// Returns wrong use by shipped code to it as a number, and writes the message to the node's log.
int code_of(const Status& status, const rove_here* here) {
    if (status) return ROVE_OK;
    rove::log().debug("{}: {}: {}", here->node().name(), here->function->name, status.error().message());
    return static_cast<int>(status.error().code());
}

int end(rove_here* here, const Status& status) {
    if (status) here->ended = true;
    return code_of(status, here);
}

// Nobody waits for the call's end, and its result is none that is checked.
bool is_unawaited(const rove_here& here, std::size_t size) {
    return !here.call.wants_reply && size <= rove::wire::kPayloadBytesMax;
}

// Memory that runs out costs the call, and not the process.
template <typename Work>
int or_no_memory(Work&& work) noexcept {
    try {
        return work();
    } catch (const std::bad_alloc&) {
        return ROVE_OVERLOADED;
    }
}

// The same, where the work ends the call.
template <typename Work>
int end_or_no_memory(rove_here* here, Work&& work) noexcept {
    try {
        return end(here, work());
    } catch (const std::bad_alloc&) {
        here->answer_lost = true;
        return ROVE_OVERLOADED;
    }
}

// Replies to a call whose caller waits. Not inlined, because posts would pay for its registers.
[[gnu::noinline]] int reply_to_caller(rove_here* here, const void* data, std::size_t size) noexcept {
    if (size <= rove::wire::kPayloadBytesMax &&
        here->engine->answers().try_reply(here->call, here->ran, bytes_of(data, size))) {
        here->ended = true;
        return ROVE_OK;
    }
    const rove_piece whole{data, size};
    return rove_reply_pieces(here, &whole, 1);
}

}  // namespace

bool rove_here::is_over() const {
    return ended || engine->is_inherited();
}

extern "C" {

int rove_reply(rove_here* here, const void* data, size_t size) noexcept {
    if (here->is_over() || (data == nullptr && size > 0)) return ROVE_INVALID;
    if (is_unawaited(*here, size)) {  // before anything else: most posts end here
        here->ended = true;
        return ROVE_OK;
    }
    return reply_to_caller(here, data, size);
}

int rove_reply_pieces(rove_here* here, const rove_piece* pieces, size_t count) noexcept {
    if (here->is_over()) return ROVE_INVALID;
    const rove::Pieces data(std::span(pieces, count));
    if (is_unawaited(*here, data.size())) {
        here->ended = true;
        return ROVE_OK;
    }
    return end_or_no_memory(here, [&] {
        return here->node().engine_to_answer(here->call, *here->engine).answers().reply(here->call, here->ran, data);
    });
}

int rove_fail(rove_here* here, const char* message) noexcept {
    if (here->is_over()) return ROVE_INVALID;
    return end_or_no_memory(here, [&] {
        const bool says = message != nullptr && *message != '\0';
        here->engine->answers().reply_error(
            here->call, rove::Error(ErrorCode::failed, says ? message : "the function failed and did not say why"));
        return rove::Status();
    });
}

int rove_forward(rove_here* here, rove_node_id node, const void* payload, size_t size) noexcept {
    if (here->is_over() || (payload == nullptr && size > 0)) return ROVE_INVALID;
    const std::optional<rove::wire::CallContext> call = rove::wire::sent_on(here->call);
    if (!call) return ROVE_INVALID;
    return end_or_no_memory(here, [&] {
        return here->node()
            .engine_towards(node, *here->engine)
            .caller()
            .send_on({node, here->function->id, bytes_of(payload, size), *call});
    });
}

int rove_find(rove_here* here, const char* name, rove_function* out) noexcept {
    if (name == nullptr || out == nullptr || here->engine->is_inherited()) return ROVE_INVALID;
    return or_no_memory([&] {
        const std::optional<std::uint64_t> function = here->node().functions().find(here->engine->lock(), name);
        if (!function) return ROVE_INVALID;
        *out = *function;
        return ROVE_OK;
    });
}

int rove_post(rove_here* here, rove_node_id node, rove_function function, const void* payload, size_t size) noexcept {
    if (here->engine->is_inherited()) return ROVE_INVALID;
    return or_no_memory([&] {
        const std::optional<rove::FunctionId> id = here->node().functions().id_of(here->engine->lock(), function);
        if (!id || (payload == nullptr && size > 0)) return static_cast<int>(ROVE_INVALID);
        const rove::wire::CallContext call =
            rove::made_by(here->node().id(), {}, rove::wire::made_within(here->call, false));
        return code_of(here->node()
                           .engine_towards(node, *here->engine)
                           .caller()
                           .send_on({node, *id, bytes_of(payload, size), call}),
                       here);
    });
}

rove_node_id rove_node(rove_here* here) noexcept {
    return here->node().id();
}
rove_node_id rove_origin(rove_here* here) noexcept {
    return here->call.node;
}
uint32_t rove_node_count(rove_here* here) noexcept {
    return here->node().node_count();
}
void* rove_host_object(rove_here* here) noexcept {
    return here->node().options().host_object;
}

}  // extern "C"

namespace rove {

static std::vector<code::HostSymbol> own_symbols() {
    const auto symbol = [](std::string_view name, auto* function) {
        return code::HostSymbol{name, reinterpret_cast<void*>(function)};
    };
    return {symbol("rove_reply", &rove_reply),
            symbol("rove_fail", &rove_fail),
            symbol("rove_forward", &rove_forward),
            symbol("rove_find", &rove_find),
            symbol("rove_post", &rove_post),
            symbol("rove_node", &rove_node),
            symbol("rove_origin", &rove_origin),
            symbol("rove_node_count", &rove_node_count),
            symbol("rove_host_object", &rove_host_object),
            symbol("rove_last_failure", &rove_last_failure),
            symbol("rove_fail_caught", &rove_fail_caught),
            symbol("rove_report_caught", &rove_report_caught),
            symbol("rove_call_back", &rove_call_back),
            symbol("rove_raise", &rove_raise),
            symbol("rove_fail_as", &rove_fail_as),
            symbol("rove_fail_unsent", &rove_fail_unsent),
            symbol("rove_object", &rove_object),
            symbol("rove_buffer_at", &rove_buffer_at),
            symbol("rove_payload_read", &rove_payload_read),
            symbol("rove_payload_keep", &rove_payload_keep),
            symbol("rove_payload_gathers", &rove_payload_gathers),
            symbol("rove_payload_coming", &rove_payload_coming),
            symbol("rove_payload_next", &rove_payload_next),
            symbol("rove_hand_over", &rove_hand_over),
            symbol("rove_no_nesting", &rove_no_nesting),
            symbol("rove_keep", &rove_keep),
            symbol("rove_release", &rove_release),
            symbol("rove_here_call", &rove_here_call),
            symbol("rove_here_call_within", &rove_here_call_within),
            symbol("rove_reply_pieces", &rove_reply_pieces),
            symbol("rove_pending_gather", &rove_pending_gather),
            symbol("rove_pending_done", &rove_pending_done),
            symbol("rove_pending_wait", &rove_pending_wait),
            symbol("rove_pending_take", &rove_pending_take),
            symbol("rove_pending_result", &rove_pending_result),
            symbol("rove_pending_any", &rove_pending_any),
            symbol("rove_pending_notify", &rove_pending_notify),
            symbol("rove_pending_limit", &rove_pending_limit),
            symbol("rove_pending_cancel", &rove_pending_cancel),
            symbol("rove_pending_drop", &rove_pending_drop),
            symbol("rove_drive", &rove_drive),
            symbol("pthread_exit", &rove::Engine::exit_thread),
            symbol("thrd_exit", &end_thread_of_c),
            symbol("pthread_detach", &detach_thread),
            symbol("thrd_detach", &detach_thread)};  // thrd_t is pthread_t here, and thrd_success 0
}

std::vector<code::HostSymbol> host_symbols() {
    std::vector<code::HostSymbol> symbols = own_symbols();
    const std::vector<code::HostSymbol> of_libraries = library_symbols();
    symbols.insert(symbols.end(), of_libraries.begin(), of_libraries.end());
    return symbols;
}

}  // namespace rove
