#include "engine/own_calls.hpp"

#include <algorithm>

#include "peer/names.hpp"

namespace rove {

using fabric::Traffic;

// ---- what arrives

// The call was forgotten, or has ended without this reply: it was too late, was cancelled, or a node on its way ended.
void OwnCalls::came_late(PeerState* from, const wire::Frame& frame) {
    const CallId id{frame.header.call, frame.header.generation};
    CallSlot* const slot = table_.find(id);
    const bool waits = slot != nullptr && slot->peer == from && std::exchange(slot->brings_memory, false);
    if ((!waits && !untaken_.take(id, from)) || from == nullptr || (frame.header.flags & wire::kError) != 0) return;
    free_memory_(*from, frame.payload);
}

void OwnCalls::peer_left(const PeerState& peer, const Error& why) {
    table_.fail_all(&peer, why, [this](CallSlot& slot) {
        engine_lock_is_held();
        slot.brings_memory = false;
        ended(slot);
    });
    untaken_.forget(&peer);
}

void OwnCalls::close(const Error& why) {
    table_.close();
    table_.fail_all(nullptr, why, [this](CallSlot& slot) {
        engine_lock_is_held();
        ended(slot);
    });
}

// ---- by the leader

unsigned OwnCalls::end_late() {
    unsigned late = 0;
    const TimePoint now = Clock::now();
    while (table_.first_deadline() && *table_.first_deadline() <= now) {
        CallSlot* slot = table_.flying(table_.first());
        if (slot == nullptr) {
            table_.drop_first();
            continue;
        }
        const std::shared_ptr<PeerState> asked = peers_.find(slot->peer);
        slot->end(Error(ErrorCode::timed_out,
                        fmt::format("{} gave no answer within the time that the call was given; it may have run",
                                    asked ? who(*asked) : name_())));
        table_.drop_first();  // not before it has ended, for which memory may be too short
        ended(*slot);
        ++late;
    }
    return late;
}

unsigned OwnCalls::tell_of_ends(Lead::Turn& turn) {
    unsigned told = 0;
    while (table_.has_to_tell() && !lead_.lost(turn) && !ThreadRuns::is_deep()) {
        const CallSlot::Notify notify = std::exchange(table_.take_to_tell().notify, {});
        if (notify.function == nullptr) continue;  // taken back since it ended
        Run callback;
        runner_.begin(callback, turn);
        runner_.outside(callback, turn, [&] { call_back_(callback, notify); });
        ++told;
    }
    lead_.tell_waiting();  // some wait for what was done there
    return told;
}

// The call has left, and may run. Where there is no memory to keep its limit, the limit counts as over.
void OwnCalls::limit_sent(CallId call, TimePoint deadline) try {
    table_.limit(call, deadline);
    lead_.wake();  // it may be sleeping for longer
} catch (const std::bad_alloc&) {
    CallSlot* const slot = table_.flying(call);
    slot->end(Error(ErrorCode::timed_out, "no memory"));  // so short that it takes none
    ended(*slot);
    lead_.wake();  // it runs what was asked for at the call's end
}

// ---- waiting

bool OwnCalls::has_ended(CallId id) {
    const CallSlot* slot = table_.find(id);
    return slot == nullptr || slot->state == CallSlot::State::ended;
}

bool OwnCalls::wait_for(Lock& lock, CallId id, Deadline deadline) {
    return runner_.wait_until(lock, deadline, [this, id]() REQUIRES(lock_of<EngineLock>) { return has_ended(id); });
}

bool OwnCalls::wait(CallId id, Deadline deadline) {
    Hold hold(lead_.mutex());
    return wait_for(hold.lock(), id, deadline);
}

std::optional<std::size_t> OwnCalls::wait_any(std::span<const CallId> ids, Deadline deadline) {
    Hold hold(lead_.mutex());
    std::optional<std::size_t> ended;
    (void)runner_.wait_until(hold.lock(), deadline, [&]() REQUIRES(lock_of<EngineLock>) {
        for (std::size_t i = 0; i < ids.size() && !ended; ++i)
            if (has_ended(ids[i])) ended = i;
        return ended.has_value();
    });
    return ended;
}

bool OwnCalls::test(CallId id) {
    Hold hold(lead_.mutex());
    if (!options_.own_thread) (void)runner_.poll(hold.lock(), std::chrono::milliseconds(0));
    if (!has_ended(id) && ThreadRuns::is_in_any()) runner_.look_once(hold.lock());
    return has_ended(id);
}

void OwnCalls::cancel(CallId id) {
    const Hold hold(lead_.mutex());
    CallSlot* slot = table_.flying(id);
    if (slot == nullptr) return;
    slot->end(Error(ErrorCode::cancelled, "the call was cancelled; it may have run"));
    ended(*slot);
    if (table_.has_to_tell()) lead_.wake();
}

void OwnCalls::limit(CallId id, TimePoint deadline) {
    const Hold hold(lead_.mutex());
    limit_sent(id, deadline);
}

bool OwnCalls::notify(CallId id, void (*notify)(void*), void* argument) {
    const Hold hold(lead_.mutex());
    CallSlot* slot = notify != nullptr ? table_.flying(id) : table_.find(id);
    if (slot == nullptr) return false;
    const CallSlot::Notify former = std::exchange(slot->notify, {notify, argument});
    return notify != nullptr || former.function != nullptr;
}

// ---- results

// The fast path: the result arrives in shared memory as the next frame from the peer, before this thread looks (as mostly where several
// calls are in flight) or while it spins. Then the slot need not hold it, and is freed. Returns nothing if the result arrives in another way;
// the caller then waits as usual. So it does where more than the slot is to be freed (free_slot).
std::optional<std::size_t> OwnCalls::finish_at_once(CallId id, std::span<std::byte> into) {
    if (ThreadRuns::is_in_any() || ThreadRuns::is_nesting_forbidden()) return std::nullopt;
    Hold hold(lead_.mutex());
    if (!lead_.is_free() || options_.waiting == Waiting::frugal || node_ || spare_memory_->is_over() ||
        fabric_->needs_progress())
        return std::nullopt;
    const CallSlot* const slot = table_.flying(id);
    if (slot == nullptr || slot->peer == nullptr || !slot->peer->link() || slot->brings_memory) return std::nullopt;
    Lead::Turn turn{.lock = hold.lock(), .baton = {.own = false}};
    lead_.begin_wait();
    lead_.take(turn);
    std::optional<std::size_t> size;
    if (slot->peer->link()->pending(/*calls_too=*/false)) size = take_reply(id, into);
    if (!size) {
        duties_.await_signals(turn);
        (void)lead_.idling().spin(turn);
        if (lead_.lost(turn)) return std::nullopt;
        size = take_reply(id, into);  // another thread may have ended the call since
    }
    lead_.give(turn);
    return size;
}

// The size of the result, if the call's reply is the next prompt frame from its peer, and the result fits. The call's slot is free then.
std::optional<std::size_t> OwnCalls::take_reply(CallId id, std::span<std::byte> into) {
    CallSlot* const slot = table_.flying(id);
    PeerState* const peer = slot != nullptr ? slot->peer : nullptr;
    if (peer == nullptr || !peer->link()) return std::nullopt;
    fabric::Link& link = *peer->link();
    wire::Frame frame;
    if (!link.next(Traffic::prompt, frame) || !peer->sends_plain_reply(frame) || frame.header.call != id.slot ||
        frame.header.generation != id.generation || frame.payload.size() > into.size())
        return std::nullopt;
    copy_bytes(into.data(), frame.payload.data(), frame.payload.size());
    link.release(Traffic::prompt);
    table_.release(*slot);
    return frame.payload.size();
}

// Waits for a result whose parts are written, as they arrive, directly into the waiting thread's own memory.
void OwnCalls::wait_into(Lock& lock, CallId id, const ResultSink& sink) {
    struct Lent {  // also where memory runs out while it waits
        CallTable& calls;
        CallId id;
        ~Lent() {
            if (CallSlot* const slot = calls.find(id)) slot->sink = nullptr;
        }
    } const lent{table_, id};
    // An earlier wait may have taken some parts and then run out of memory: the other parts cannot be stored then.
    if (CallSlot* const slot = table_.flying(id); slot != nullptr && !slot->in_sink()) slot->sink = &sink;
    (void)wait_for(lock, id, std::nullopt);
}

// The slot of a call after the wait for it. If the call has not ended, the node has been shut down.
Result<CallSlot*> OwnCalls::ended_slot(CallId id) {
    CallSlot* const slot = table_.find(id);
    if (slot == nullptr) return fail(ErrorCode::invalid, "the call's result was taken already");
    if (slot->state == CallSlot::State::flying) slot->end(was_shut_down(name_()));
    return slot;
}

Result<std::size_t> OwnCalls::finish_into(CallId id, std::span<std::byte> into) {
    if (const std::optional<std::size_t> size = finish_at_once(id, into)) return *size;
    return wait_and_finish_into(id, into);
}

[[gnu::noinline]] Result<std::size_t> OwnCalls::wait_and_finish_into(CallId id, std::span<std::byte> into) {
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
    Hold hold(lead_.mutex());
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

Result<CallEnd> OwnCalls::finish(CallId id) {
    Afterwards afterwards;
    Hold hold(lead_.mutex());
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

Result<std::optional<Bytes>> OwnCalls::result_into(CallId id, const ResultSink& sink) {
    Hold hold(lead_.mutex());
    wait_into(hold.lock(), id, sink);
    ROVE_TRY(CallSlot* const slot, ended_slot(id));
    if (slot->error()) return tl::unexpected<Error>(*slot->error());
    return slot->in_sink() ? std::nullopt : std::optional(slot->data());
}

Result<Bytes> OwnCalls::result(CallId id) {
    Hold hold(lead_.mutex());
    (void)wait_for(hold.lock(), id, std::nullopt);
    ROVE_TRY(CallSlot* const slot, ended_slot(id));
    if (slot->error()) return tl::unexpected<Error>(*slot->error());
    slot->brings_memory = false;  // the owner of the result frees it
    return slot->data();
}

void OwnCalls::forget(CallId id) {
    Afterwards afterwards;
    const Hold hold(lead_.mutex());
    free_slot(id, afterwards);
}

void OwnCalls::free_slot(CallId id, Afterwards& afterwards) {
    if (CallSlot* const slot = table_.find(id)) {
        if (slot->brings_memory) leave_memory(*slot);
        table_.release(*slot);
    }
    if (node_) afterwards.last = last_use();
    if (spare_memory_->is_over()) afterwards.memory = TrimAtEnd(spare_memory_);
}

// ---- memory on other nodes that nobody takes

void OwnCalls::expect_memory(CallId id) {
    const Hold hold(lead_.mutex());
    if (CallSlot* const slot = table_.find(id)) slot->brings_memory = true;
}

// Called when a call for a buffer is given up, before its answer has arrived or with the answer.
void OwnCalls::leave_memory(CallSlot& slot) noexcept try {
    const std::shared_ptr<PeerState> peer = peers_.find(slot.peer);
    if (!peer || !peer->linked()) return;
    if (slot.state == CallSlot::State::ended && !slot.error())
        free_memory_(*peer, slot.data());
    else if (!slot.error() || slot.error()->node() == Error::no_node)  // it was late, or cancelled
        untaken_.expect(slot.id(), peer.get());
} catch (const std::bad_alloc&) {  // the memory stays on its node until this node leaves
}

}  // namespace rove
