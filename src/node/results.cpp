// Results, taken by the threads that wait for them.
#include <cstring>

#include "node/core.hpp"

namespace rove {

// Parts of a result go to whoever waits for it as they come: into its own memory, and by no way round.
void NodeCore::wait_into(Lock& lock, CallTable::Id id, const ResultSink& sink) {
    struct Lent {  // also where memory runs out while it waits
        CallTable& calls;
        CallTable::Id id;
        ~Lent() {
            if (CallSlot* const slot = calls.find(id)) slot->sink = nullptr;
        }
    } const lent{calls_, id};
    if (CallSlot* const slot = calls_.flying(id)) slot->sink = &sink;
    (void)wait_for(lock, id, std::nullopt);
}

// Of a call that was waited for: where it has not ended, the node has.
Result<CallSlot*> NodeCore::ended_slot(CallTable::Id id) {
    CallSlot* const slot = calls_.find(id);
    if (slot == nullptr) return fail(ErrorCode::invalid, "the call's result was taken already");
    if (slot->state == CallSlot::State::flying) slot->end(stopped());
    return slot;
}

Result<std::size_t> NodeCore::finish_into(CallTable::Id id, std::span<std::byte> into) {
    struct Copying {
        std::span<std::byte> into;
        std::size_t done = 0, total = 0;
    } copying{into};
    const ResultSink sink{[](void* self, Bytes part, std::size_t total) {
                              auto& to = *static_cast<Copying*>(self);
                              to.total = total;
                              if (total <= to.into.size())
                                  std::memcpy(to.into.data() + to.done, part.data(), part.size());
                              to.done += part.size();
                              return ResultSink::Took::accepted;
                          },
                          &copying};
    Afterwards afterwards;
    Hold hold(*this);
    if (const auto size = finish_at_once(hold.lock(), id, into)) {
        free_slot(id, afterwards);
        return *size;
    }
    wait_into(hold.lock(), id, sink);
    ROVE_TRY(CallSlot* const slot, ended_slot(id));
    Result<std::size_t> size = slot->in_sink() ? copying.total : slot->data().size();
    if (slot->error())
        size = tl::unexpected<Error>(*slot->error());
    else if (*size > into.size())
        size = fail(ErrorCode::invalid, "a result of {} bytes does not fit into {}", *size, into.size());
    else if (*size > 0 && !slot->in_sink())
        std::memcpy(into.data(), slot->data().data(), *size);
    free_slot(id, afterwards);
    return size;
}

Result<CallEnd> NodeCore::finish(CallTable::Id id) {
    Afterwards afterwards;
    Hold hold(*this);
    (void)wait_for(hold.lock(), id, std::nullopt);
    ROVE_TRY(CallSlot* const slot, ended_slot(id));
    if (slot->error()) {
        Error error = *slot->error();
        free_slot(id, afterwards);
        return tl::unexpected<Error>(std::move(error));
    }
    CallEnd end = slot->take();
    free_slot(id, afterwards);
    return end;
}

Result<std::optional<Bytes>> NodeCore::result_into(CallTable::Id id, const ResultSink& sink) {
    Hold hold(*this);
    wait_into(hold.lock(), id, sink);
    ROVE_TRY(CallSlot* const slot, ended_slot(id));
    if (slot->error()) return tl::unexpected<Error>(*slot->error());
    return slot->in_sink() ? std::nullopt : std::optional(slot->data());
}

Result<Bytes> NodeCore::result(CallTable::Id id) {
    Hold hold(*this);
    (void)wait_for(hold.lock(), id, std::nullopt);
    ROVE_TRY(CallSlot* const slot, ended_slot(id));
    if (slot->error()) return tl::unexpected<Error>(*slot->error());
    slot->brings_memory = false;  // whoever has the result frees it
    return slot->data();
}

}  // namespace rove
