// rove/edge.h: what the templates of rove/rove.hpp call, at home and where they have travelled to.
#include "rove/edge.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/demangle.hpp"
#include "base/log.hpp"
#include "base/of_thread.hpp"
#include "base/stack.hpp"
#include "base/words_of.hpp"
#include "engine/gathering.hpp"
#include "engine/here.hpp"
#include "node/core.hpp"
#include "peer/names.hpp"
#include "program/residents.hpp"

namespace {

using rove::Error;
using rove::ErrorCode;
using rove::NodeCore;

constexpr rove_failure kNoMemory{ROVE_OVERLOADED, Error::no_node, "", "no memory"};

struct LastFailure {
    rove_failure told = kNoMemory;
    std::string type, message;
};
rove::OfThread<LastFailure> last_failure;

// Callbacks of calls that had ended when they were asked for. Each runs within the one that asked for it, as long as the thread has stack for
// it; the others run when the innermost one is done. The first few do not ask how much stack is left.
constexpr unsigned kCallingBackUnasked = 16;
constexpr std::size_t kCallingBackStackBytes = 128UL * 1024;
struct CallingBack {
    unsigned depth = 0;
    struct Later {
        void (*run)(void*);
        void* argument;
        unsigned depth;  // of the callback that asked for it
    };
    std::deque<Later> later;

    // The size of a fiber's stack is unknown: there the depth is the bound.
    [[nodiscard]] bool is_deep() const {
        return depth >= kCallingBackUnasked &&
               (!rove::is_on_own_stack() || rove::stack_left() < kCallingBackStackBytes);
    }
    // False: there is no memory.
    bool defer(void (*run)(void*), void* argument) try {
        later.push_back({run, argument, depth});
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
    // A callback that did not return has left its function: what was asked for within it may refer to objects that are gone.
    void forget_from(unsigned own) {
        std::erase_if(later, [own](const Later& each) { return each.depth >= own; });
    }
};
rove::OfThread<CallingBack> calling_back;

// For how long a thread that waits for calls of several engines waits for those of one: about as long as a sleep and a wake-up take.
constexpr auto kEngineFor = std::chrono::microseconds(100);

// Takes no memory.
int no_memory() noexcept {
    if (LastFailure* last = last_failure.get()) last->told = kNoMemory;
    return ROVE_OVERLOADED;
}

// The code is returned even if there is no memory for the message: the caller acts on the code.
int failed(ErrorCode code, rove_node_id node, std::string_view type, std::string_view message) noexcept {
    LastFailure* last = last_failure.get();
    if (last == nullptr) return static_cast<int>(code);
    last->told = kNoMemory;
    last->told.error = static_cast<int>(code);
    last->told.node = node;
    try {
        last->type = type;
        last->message = message;
        last->told.type = last->type.c_str();
        last->told.message = last->message.c_str();
    } catch (const std::bad_alloc&) {  // `told` has kNoMemory's words
    }
    return last->told.error;
}
int failed(const Error& error) noexcept {
    return failed(error.code(), error.node(), error.exception_type(), error.message());
}
int failed(ErrorCode code, std::string_view message) noexcept {
    return failed(code, Error::no_node, {}, message);
}

rove::Engine& engine_of(const rove_pending& pending) {
    return *static_cast<rove::Engine*>(pending.engine);
}
NodeCore& core_of(const rove_pending& pending) {
    return engine_of(pending).node();
}
rove::OwnCalls& calls_of(const rove_pending& pending) {
    return engine_of(pending).own_calls();
}
// The call is of the process that this one is a fork of.
bool is_inherited(const rove_pending& pending) {
    return engine_of(pending).is_inherited();
}
rove::CallId id_of(const rove_pending& pending) {
    return {static_cast<std::uint16_t>(pending.slot), pending.generation};
}
// Which of these calls of one node has ended, for which it waits; nothing: none has in that time. A thread leads one engine at a time, so it
// waits for the calls of each engine in turn.
std::optional<std::size_t> first_ended(std::span<const rove_pending> pendings, rove::Deadline deadline) {
    struct Calls {
        rove::Engine* engine;
        std::vector<rove::CallId> ids{};
        std::vector<std::size_t> places{};
    };
    std::vector<Calls> engines;
    for (std::size_t i = 0; i < pendings.size(); ++i) {
        auto of = std::ranges::find(engines, &engine_of(pendings[i]), &Calls::engine);
        if (of == engines.end()) of = engines.insert(of, {.engine = &engine_of(pendings[i])});
        of->ids.push_back(id_of(pendings[i]));
        of->places.push_back(i);
    }
    for (;;) {
        const bool is_over = deadline && rove::Clock::now() >= *deadline;
        for (const Calls& each : engines)
            if (const auto ended = each.engine->own_calls().wait_any(each.ids, rove::Clock::now() + kEngineFor))
                return each.places[*ended];
        if (is_over) return std::nullopt;
    }
}

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

const rove_failure* rove_last_failure(void) noexcept {
    const LastFailure* last = last_failure.get();
    return last != nullptr ? &last->told : &kNoMemory;
}

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

void rove_call_back(void (*run)(void*), void* argument) {
    CallingBack* const within = calling_back.get();
    if (within == nullptr) return run(argument);
    if (within->is_deep() && within->defer(run, argument)) return;
    struct Deeper {
        explicit Deeper(CallingBack& calling) : of(calling), depth(++calling.depth) {}
        Deeper(const Deeper&) = delete;
        ~Deeper() {
            if (!has_returned) of.forget_from(depth);  // it threw, or has ended its thread
            --of.depth;
        }
        CallingBack& of;
        const unsigned depth;
        bool has_returned = false;
    } deeper{*within};
    run(argument);
    while (!within->later.empty()) {
        const CallingBack::Later next = within->later.front();
        within->later.pop_front();
        next.run(next.argument);
    }
    deeper.has_returned = true;
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
    (void)no_memory();
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
    return no_memory();
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
    return no_memory();
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
    return no_memory();
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
    return no_memory();
}

int rove_pending_done(const rove_pending* pending) noexcept {
    // True in a fork's child: rove_pending_take then reports the reason.
    return is_inherited(*pending) || calls_of(*pending).test(id_of(*pending)) ? 1 : 0;
}

int rove_pending_wait(const rove_pending* pending, int64_t timeout_ns) noexcept try {
    if (is_inherited(*pending) || calls_of(*pending).wait(id_of(*pending), rove::deadline_of(timeout_ns)))
        return ROVE_OK;
    return failed(ErrorCode::timed_out, "the call has not ended in that time; it is still in flight");
} catch (const std::bad_alloc&) {
    return no_memory();
}

int rove_pending_take(rove_pending* pending, void* into, size_t room, size_t* size) noexcept try {
    rove::Engine& engine = engine_of(*pending);
    const rove::CallId id = id_of(*pending);
    pending->engine = nullptr;
    if (engine.is_inherited()) return failed(engine.node().why_unusable());
    const rove::Result<std::size_t> taken = engine.own_calls().finish_into(id, {static_cast<std::byte*>(into), room});
    if (!taken) return failed(taken.error());
    *size = *taken;
    return ROVE_OK;
} catch (const std::bad_alloc&) {
    return no_memory();
}

int rove_pending_result(const rove_pending* pending, const void** data, size_t* size) noexcept try {
    if (is_inherited(*pending)) return failed(core_of(*pending).why_unusable());
    const rove::Result<rove::Bytes> bytes = calls_of(*pending).result(id_of(*pending));
    if (!bytes) return failed(bytes.error());
    *data = bytes->data();
    *size = bytes->size();
    return ROVE_OK;
} catch (const std::bad_alloc&) {
    return no_memory();
}

int rove_pending_gather(const rove_pending* pending, int (*take)(void*, const void*, size_t, size_t), void* self,
                        const void** data, size_t* size) noexcept try {
    if (is_inherited(*pending)) return failed(core_of(*pending).why_unusable());
    struct Sink {
        decltype(take) take;
        void* self;
    } sink{take, self};
    const rove::ResultSink taking{[](void* to, rove::Bytes part, std::size_t total) {
                                      const auto& given = *static_cast<const Sink*>(to);
                                      const int took = given.take(given.self, part.data(), part.size(), total);
                                      using enum rove::ResultSink::Took;
                                      if (took < 0) return no_memory;
                                      return took == 0 ? refused : accepted;
                                  },
                                  &sink};
    const rove::Result<std::optional<rove::Bytes>> bytes = calls_of(*pending).result_into(id_of(*pending), taking);
    if (!bytes) return failed(bytes.error());
    *data = *bytes ? (*bytes)->data() : nullptr;
    *size = *bytes ? (*bytes)->size() : 0;
    return ROVE_OK;
} catch (const std::bad_alloc&) {
    return no_memory();
}

int rove_pending_any(const rove_pending* pendings, size_t count, int64_t timeout_ns, size_t* which) noexcept try {
    if (count == 0) return failed(ErrorCode::invalid, "there are no calls to wait for");
    for (size_t i = 0; i < count; ++i)
        if (pendings[i].engine == nullptr)
            return failed(ErrorCode::invalid, "the result of one of the calls was taken already");
    if (is_inherited(pendings[0])) return failed(core_of(pendings[0]).why_unusable());
    const rove::Deadline deadline = rove::deadline_of(timeout_ns);
    bool of_one_engine = true;
    std::vector<rove::CallId> ids;
    for (size_t i = 0; i < count; ++i) {
        if (&core_of(pendings[i]) != &core_of(pendings[0]))
            return failed(ErrorCode::invalid, "calls of different nodes of one process cannot be waited for together");
        of_one_engine = of_one_engine && pendings[i].engine == pendings[0].engine;
        ids.push_back(id_of(pendings[i]));
    }
    const auto ended =
        of_one_engine ? calls_of(pendings[0]).wait_any(ids, deadline) : first_ended({pendings, count}, deadline);
    if (!ended) return failed(ErrorCode::timed_out, "none of the calls has ended in that time");
    *which = *ended;
    return ROVE_OK;
} catch (const std::bad_alloc&) {
    return no_memory();
}

int rove_pending_notify(const rove_pending* pending, void (*notify)(void*), void* argument) noexcept {
    if (notify == nullptr) {  // the call may be gone, and its node
        const std::shared_ptr<NodeCore> core = NodeCore::living(pending->engine);
        return core && !core->is_inherited() && calls_of(*pending).notify(id_of(*pending), nullptr, nullptr) ? 1 : 0;
    }
    if (is_inherited(*pending)) return 0;
    return calls_of(*pending).notify(id_of(*pending), notify, argument) ? 1 : 0;
}

void rove_pending_limit(const rove_pending* pending, int64_t timeout_ns) noexcept {
    if (is_inherited(*pending)) return;
    if (const auto deadline = rove::deadline_of(timeout_ns)) calls_of(*pending).limit(id_of(*pending), *deadline);
}

void rove_pending_cancel(const rove_pending* pending) noexcept {
    if (!is_inherited(*pending)) calls_of(*pending).cancel(id_of(*pending));
}

void rove_pending_drop(rove_pending* pending) noexcept {
    if (pending->engine == nullptr) return;
    rove::Engine& engine = engine_of(*pending);
    pending->engine = nullptr;
    if (!engine.is_inherited()) engine.own_calls().forget(id_of(*pending));
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
