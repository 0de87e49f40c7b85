// rove/edge.h: the calls of this process, from the moment when they were sent.
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "node/core.hpp"
#include "node/last_failure.hpp"
#include "rove/edge.h"

namespace {

using rove::ErrorCode;
using rove::failed;
using rove::NodeCore;

// For how long a thread that waits for calls of several engines waits for those of one: about as long as a sleep and a wake-up take.
constexpr auto kEngineFor = std::chrono::microseconds(100);

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

}  // namespace

extern "C" {

int rove_pending_done(const rove_pending* pending) noexcept {
    // True in a fork's child: rove_pending_take then reports the reason.
    return is_inherited(*pending) || calls_of(*pending).test(id_of(*pending)) ? 1 : 0;
}

int rove_pending_wait(const rove_pending* pending, int64_t timeout_ns) noexcept try {
    if (is_inherited(*pending) || calls_of(*pending).wait(id_of(*pending), rove::deadline_of(timeout_ns)))
        return ROVE_OK;
    return failed(ErrorCode::timed_out, "the call has not ended in that time; it is still in flight");
} catch (const std::bad_alloc&) {
    return rove::failed_without_memory();
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
    return rove::failed_without_memory();
}

int rove_pending_result(const rove_pending* pending, const void** data, size_t* size) noexcept try {
    if (is_inherited(*pending)) return failed(core_of(*pending).why_unusable());
    const rove::Result<rove::Bytes> bytes = calls_of(*pending).result(id_of(*pending));
    if (!bytes) return failed(bytes.error());
    *data = bytes->data();
    *size = bytes->size();
    return ROVE_OK;
} catch (const std::bad_alloc&) {
    return rove::failed_without_memory();
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
    return rove::failed_without_memory();
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
    return rove::failed_without_memory();
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

}  // extern "C"
