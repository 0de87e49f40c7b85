// rove/edge.h: what the templates of rove/rove.hpp call where a function runs, at home and where it has travelled to.
#include "rove/edge.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/demangle.hpp"
#include "base/log.hpp"
#include "base/words_of.hpp"
#include "engine/gathering.hpp"
#include "engine/here.hpp"
#include "node/core.hpp"
#include "node/last_failure.hpp"
#include "peer/names.hpp"
#include "program/residents.hpp"

namespace {

using rove::Error;
using rove::ErrorCode;
using rove::failed;
using rove::NodeCore;

int end(rove_here* here, const Error& error) {
    if (here->gathering != nullptr)
        here->gathering->skip_rest(*here);  // the call that is to be ended arrives after its parts
    if (here->is_over()) return ROVE_INVALID;
    here->engine->answers().reply_error(here->call, error);
    here->ended = true;
    return ROVE_OK;
}

// The rove_here of a call that is ended later.
struct Kept : rove_here {
    explicit Kept(const rove_here& from)
        : rove_here{.engine = from.engine,
                    .function = from.function,
                    .call = from.call,
                    .ran = from.ran,
                    .ended = from.ended,
                    .blocks = from.blocks},
          node(from.node().shared_from_this()),
          code(from.node().functions().hold(*from.function)) {}
    const std::shared_ptr<NodeCore> node;
    const std::optional<rove::code::Entered> code;  // so that it is not evicted
};

}  // namespace

extern "C" {

int rove_fail_caught(rove_here* here) noexcept try {
    try {
        throw;
    } catch (const rove::RemoteError& error) {  // of a call that the function made: passed on as it is
        return end(here, Error::reported(error.code(), error.message(), error.node(), error.type()));
    } catch (const Error& error) {
        return end(here, Error::reported(error.code(), error.message(), here->node().id(), "rove::Error"));
    } catch (const abi::__forced_unwind&) {
        here->engine->keep_thread(here);
    } catch (const std::exception& error) {
        return end(here, Error::reported(ErrorCode::failed, rove::words_of(error), here->node().id(),
                                         rove::demangled(typeid(error).name())));
    } catch (...) {
        const std::string type = rove::type_of_caught();
        return end(here, Error::reported(ErrorCode::failed, "an exception that is no std::exception", here->node().id(),
                                         type.empty() ? "unknown" : type));
    }
} catch (const std::bad_alloc&) {  // for the words
    here->answer_lost = true;
    return ROVE_OVERLOADED;
}

void rove_report_caught(const char* where) noexcept try {
    try {
        throw;
    } catch (const std::exception& error) {
        rove::log().error("{} let {} out: {}", where, rove::demangled(typeid(error).name()), rove::words_of(error));
    } catch (...) {
        const std::string type = rove::type_of_caught();
        rove::log().error("{} let {} out", where, type.empty() ? "an unknown exception" : type);
    }
} catch (const std::bad_alloc&) {  // for the words
}

void rove_raise(const rove_failure* why) {
    Error error = Error::reported(static_cast<ErrorCode>(why->error), why->message, why->node, why->type);
    if (rove::ThreadRuns::is_in_function()) {
        if (!error.exception_type().empty()) throw rove::RemoteError(std::move(error));
        throw error;
    }
    fmt::print(stderr, "rove: {} ({})\n", error.message(), rove::to_string(error.code()));
    std::abort();
}

int rove_fail_as(rove_here* here, int error, const char* message) noexcept try {
    const bool known = error > ROVE_OK && error <= ROVE_INTERNAL;
    return end(here,
               Error(known ? static_cast<ErrorCode>(error) : ErrorCode::failed, message != nullptr ? message : ""));
} catch (const std::bad_alloc&) {  // for the words
    here->answer_lost = true;
    return ROVE_OVERLOADED;
}

int rove_fail_unsent(rove_here* here, int error, std::size_t size) noexcept {
    std::array<char, 160> why{};  // without memory, which there may be none of
    fmt::format_to_n(why.data(), why.size() - 1,
                     "a result of {} bytes cannot be sent (a reply has {} at most); leave it in a rove::Buffer", size,
                     ROVE_MESSAGE_BYTES_MAX);
    return rove_fail_as(here, error, why.data());
}

void* rove_object(rove_here* here, const char* name, const char* type) noexcept try {
    if (here->engine->is_inherited()) return (void)failed(here->node().why_unusable()), nullptr;
    const rove::Result<void*> object = here->node().objects().find(name, type);
    if (object) return *object;
    (void)failed(object.error());
    return nullptr;
} catch (const std::bad_alloc&) {
    (void)rove::failed_without_memory();
    return nullptr;
}

int rove_buffer_at(rove_here* here, uint64_t key, uint64_t offset, uint64_t bytes, void** out) noexcept try {
    if (here->engine->is_inherited()) return failed(here->node().why_unusable());
    std::shared_ptr<rove::Block> block = here->node().shared().memory.find(key);
    if (!block || offset > block->bytes().size() || bytes > block->bytes().size() - offset)
        return failed(
            ErrorCode::invalid,
            fmt::format("a buffer of {} bytes is not on {}: it belongs to another node, was freed, or is smaller",
                        bytes, here->node().name()));
    here->blocks.push_back(block);
    *out = block->bytes().data() + offset;
    return ROVE_OK;
} catch (const std::bad_alloc&) {
    return rove::failed_without_memory();
}

void rove_payload_read(rove_here* here) noexcept {
    if (here->payload_read != nullptr)
        here->payload_read->store(true, std::memory_order_release);  // partner: set_aside
    if (here->large_read_at != nullptr) here->large_read_at->store(rove::Clock::now(), std::memory_order_relaxed);
}

void rove_payload_gathers(rove_here* here) noexcept {
    if (!here->function->gathers.load(std::memory_order_relaxed))
        here->function->gathers.store(true, std::memory_order_relaxed);
    rove_payload_read(here);
}

size_t rove_payload_coming(rove_here* here) noexcept {
    return here->gathering != nullptr ? here->gathering->total_bytes() : 0;
}

int rove_payload_next(rove_here* here, const void** part, size_t* size) noexcept try {
    *part = nullptr;
    *size = 0;
    if (here->gathering == nullptr) return failed(ErrorCode::invalid, "the payload is there already");
    switch (here->gathering->next(*here)) {
        case rove::Gathering::Next::part:
            *part = here->gathering->part().data();
            *size = here->gathering->part().size();
            return ROVE_OK;
        case rove::Gathering::Next::call: return ROVE_OK;
        case rove::Gathering::Next::over: break;
    }
    return failed(ErrorCode::cancelled, "the call whose payload was arriving does not come");
} catch (const std::bad_alloc&) {
    return rove::failed_without_memory();
}

const void* rove_payload_keep(rove_here* here, const void* payload, size_t size) noexcept {
    if (here->payload_read == nullptr || size == 0) return payload;
    here->payload.reset(new (std::nothrow) std::byte[size]);
    if (!here->payload) return payload;  // its place in the mailbox is kept instead
    std::memcpy(here->payload.get(), payload, size);
    rove_payload_read(here);
    return here->payload.get();
}

void rove_hand_over(rove_here* here) noexcept try {
    if (!here->engine->is_inherited()) here->engine->hand_over_here();
} catch (const std::bad_alloc&) {  // it leads on
}

void rove_no_nesting(int change) noexcept {
    rove::ThreadRuns::forbid_nesting(change);
}

rove_here* rove_keep(rove_here* here) noexcept {
    try {
        auto* kept = new Kept(*here);
        here->ended = true;  // by the other one
        return kept;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void rove_release(rove_here* kept) noexcept {
    if (kept == nullptr) return;
    if (kept->engine->is_inherited()) return;  // as Calls: the parent's
    if (!kept->ended) (void)(kept->answer_lost ? rove_fail(kept, "memory ran out") : rove_reply(kept, nullptr, 0));
    delete static_cast<Kept*>(kept);
}

int rove_here_call(rove_here* here, rove_node_id to, rove_code function, const void* payload, size_t size,
                   rove_pending* out) noexcept try {
    if (payload == nullptr && size > 0) return failed(ErrorCode::invalid, "rove_here_call: payload is NULL");
    const rove_piece whole{payload, size};
    return rove_here_call_within(here, to, function, &whole, 1, rove::detail::kForever, out);
} catch (const std::bad_alloc&) {
    return rove::failed_without_memory();
}

int rove_here_call_within(rove_here* here, rove_node_id to, rove_code function, const rove_piece* pieces, size_t count,
                          int64_t timeout_ns, rove_pending* out) noexcept try {
    if (!here->node().is_usable()) return failed(here->node().why_unusable());
    rove::Engine& engine = here->node().engine_towards(to, *here->engine);
    const rove::Result<rove::CallId> id = engine.caller().call_from_here(
        to, reinterpret_cast<rove::code::EntryPoint>(function), rove::Pieces(std::span(pieces, count)),
        rove::wire::made_within(here->call, out != nullptr), rove::deadline_of(timeout_ns));
    if (!id) return failed(id.error());
    if (out != nullptr) *out = {&engine, id->slot, id->generation};
    return ROVE_OK;
} catch (const std::bad_alloc&) {
    return rove::failed_without_memory();
}

void rove_drive(void* engine, int (*done)(void*), void* argument, int64_t timeout_ns) noexcept {
    // The node that was last waited for may be gone while the caller waits for something else.
    const std::shared_ptr<NodeCore> core = NodeCore::living(engine);
    if (core && core->is_usable())
        static_cast<rove::Engine*>(engine)->drive([done, argument] { return done(argument) != 0; },
                                                  rove::deadline_of(timeout_ns));
    else
        std::this_thread::sleep_for(std::chrono::microseconds(50));  // another thread does what it waits for
}

}  // extern "C"
