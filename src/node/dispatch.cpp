// Arrivals: what a node does with each kind of frame.
#include <cxxabi.h>

#include <algorithm>

#include "base/stack.hpp"
#include "base/words_of.hpp"
#include "node/core.hpp"
#include "node/gathering.hpp"
#include "node/here.hpp"
#include "node/log.hpp"
#include "node/names.hpp"
#include "node/offload.hpp"
#include "node/residents.hpp"
#include "node/running.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

// How long one peer's calls may take before another's are looked at, and after how many of them the clock is looked at: a look costs as
// much as a small function, so there are fewer where they are small, and fewest where those of a whole turn were.
constexpr auto kTurnMax = std::chrono::milliseconds(1);
constexpr unsigned kLooksAtClock = 4, kLooksAtClockMax = 32;

FunctionId named_function(const wire::Frame& frame) {
    return FunctionId::from(frame.extra.first<sizeof(FunctionId)>());
}

Error takes_no_code(const std::string& node) {
    return {ErrorCode::refused,
            node + " runs its own program's functions only, and takes no code; give it an address to listen on"};
}

}  // namespace

// What nearly all calls are: by handle, without marks, and made by who sends it. checked() need not look at it.
bool NodeCore::is_plain_call(const PeerState& from, const wire::Frame& frame) const {
    const wire::FrameHeader& header = frame.header;
    return header.kind == Kind::call && header.extra_bytes == 0 && (header.flags & ~wire::kNoReply) == 0 &&
           header.node == from.id && frame.payload.size() <= wire::kPayloadBytesMax;
}

// In few words where there is no memory for more.
static Error no_memory(const std::string& node, const PeerState& peer) try {
    return {ErrorCode::overloaded, fmt::format("{} has no memory for what {} sent", node, who(peer))};
} catch (const std::bad_alloc&) {
    return {ErrorCode::overloaded, "no memory"};
}

// While a function runs the lock is free: the peer may be met again, and then it has another link. Its old link stays mapped
// until nothing runs (`buried_`). Where the lead was lost, another thread has the peer, and nothing of it is touched any more.
unsigned NodeCore::serve(PeerState& peer, Lead::Turn& turn) try {
    fabric::Link* const link = peer.link.get();
    unsigned handled = 0;
    if (peer.has_frames_waiting()) {
        handled = sender_.flush(peer);
        exchange_.answer_more(peer);
    }
    TimePoint code_since{};
    wire::Frame frame;
    // Replies first: code travels with them, and is sent before the call that needs it.
    while (handled < kBatchMax && link->next(Traffic::replies, frame)) {
        if (!peer.sends_plain_reply(frame)) {
            if (const auto wrong = checked(peer, frame, Traffic::replies)) {
                link->break_with(*wrong);
                break;
            }
        }
        const bool code = frame.header.kind == Kind::code;
        if (code && code_since == TimePoint{}) code_since = Clock::now();
        on_reply_traffic(peer, frame);
        link->release(Traffic::replies);
        ++handled;
        if (!code) continue;
        run_parked(turn);
        if (lead_.lost(turn) || peer.link.get() != link) return handled;
        if (Clock::now() - code_since > kTurnMax) break;
    }
    handled += serve_calls(peer, turn);
    if (lead_.lost(turn) || peer.link.get() != link) return handled;
    if (link->broken() != nullptr && !peer.lost) notice_end(peer);
    return handled;
} catch (const std::bad_alloc&) {  // it costs this link, and not the process
    if (!lead_.lost(turn) && peer.link) peer.link->break_with(no_memory(name(), peer));
    return 1;
}

// At most once: a frame is given back to the link that it was taken from exactly once. This loop does so as soon as its function has
// returned, whatever else has happened; or the function's run holds the frame, and gives it back; or a Gathering, which reads its
// arguments out of this mailbox, gives back each part and the call (Gathering::look, take_call).
unsigned NodeCore::serve_calls(PeerState& peer, Lead::Turn& turn) {
    unsigned handled = 0, look_at = peer.calls_are_quick ? kLooksAtClockMax : kLooksAtClock;
    TimePoint begun = peer.calls_are_quick ? peer.looked_at : TimePoint{};  // not later than this turn
    wire::Frame frame;
    fabric::Link* const link = peer.link.get();
    if (peer.gathering != nullptr && peer.gathering->keeps_mailbox()) return 0;
    while (link != nullptr && peer.link.get() == link && handled < kBatchMax && !peer.has_backlog() &&
           link->next(Traffic::calls, frame)) {
        if (!is_plain_call(peer, frame)) {
            if (peer.gathering != nullptr && peer.gathering->takes(frame)) break;
            if (const auto wrong = checked(peer, frame, Traffic::calls)) {
                link->break_with(*wrong);
                break;
            }
            const Kind kind = frame.header.kind;
            if (kind == Kind::part || kind == Kind::code) {  // code: of the tier that follows
                if (kind == Kind::part && Gathering::runs_part(*this, peer, frame, turn)) {
                    ++handled;
                    if (lead_.lost(turn)) break;
                    continue;
                }
                if (kind == Kind::code) {
                    if (begun == TimePoint{}) begun = Clock::now();
                    exchange_.on_code(peer, frame);
                } else if (!take_part(peer, frame)) {
                    break;
                }
                link->release(Traffic::calls);
                ++handled;
                if (kind == Kind::code && Clock::now() - begun > kTurnMax) break;
                continue;
            }
        }
        if (!turn.runs_functions()) {
            leave_to_others(turn);
            break;
        }
        if ((frame.header.flags & wire::kNoReply) == 0) link->own_next(Traffic::replies);
        if (frame.header.node == peer.id && peer.id != peer.back) frame.header.node = peer.back;
        const Taken taken = on_call(&peer, frame, turn);
        if (taken == Taken::parked) break;
        ++handled;
        if (taken == Taken::held) break;  // another thread leads
        link->release(Traffic::calls);
        if (handled < look_at) continue;
        const TimePoint now = Clock::now();
        if (begun == TimePoint{}) begun = now;
        peer.looked_at = now;
        const bool in_time = now - begun <= kTurnMax;
        peer.calls_are_quick = in_time && (peer.calls_are_quick || handled == kBatchMax);
        if (!in_time) break;
        look_at = handled + std::min(look_at, kLooksAtClockMax);
    }
    return handled;
}

// The call at the head of a mailbox is not for this thread. Who is quiet leads only where nobody else can.
void NodeCore::leave_to_others(Lead::Turn& turn) {
    if (turn.baton.quiet || !lead_.has_followers()) return;
    lead_.give_for_long(turn);
}

void NodeCore::on_reply_traffic(PeerState& from, const wire::Frame& frame) {
    switch (frame.header.kind) {
        case Kind::reply: return on_reply(&from, frame);
        case Kind::part: return on_reply_part(from, frame);
        case Kind::bind: return exchange_.on_bind(from, frame);
        case Kind::code: return exchange_.on_code(from, frame);
        case Kind::need: return exchange_.on_need(from, frame);
        case Kind::lack: return exchange_.on_lack(from, frame);
        case Kind::load: return on_load(from, frame);
        default: break;  // none of them passes the check
    }
}

// As soon as code has arrived, before other code can push it out again.
void NodeCore::run_parked(Lead::Turn& turn) {
    if (!turn.runs_functions()) return;
    for (std::size_t i = 0; i < peers_.size() && !lead_.lost(turn); ++i) {
        const std::shared_ptr<PeerState> peer = peers_[i];
        if (peer->parked) (void)serve_calls(*peer, turn);
    }
    if (local_parked_ && !lead_.lost(turn)) (void)serve_local(turn);
}

// Frames that this node sent to itself: the same as any other, from a queue instead of a mailbox.
unsigned NodeCore::serve_local(Lead::Turn& turn) {
    unsigned handled = 0;
    while (!local_.empty() && handled < kBatchMax) {
        std::list<ByteBuffer> first;  // a function that runs may send more
        first.splice(first.begin(), local_, local_.begin());
        const ByteBuffer& bytes = first.front();
        const wire::Frame frame = wire::frame_in(bytes);
        local_bytes_ -= bytes_waiting(bytes.size());
        Taken taken = Taken::done;
        try {
            taken = on_call(nullptr, frame, turn);
        } catch (const std::bad_alloc&) {  // it costs this call, and not the process
            end_with_error(frame.header, rove::no_memory());
        }
        if (taken == Taken::parked) {
            local_bytes_ += bytes_waiting(bytes.size());
            local_.splice(local_.begin(), first);
            return handled;
        }
        ++handled;
        if (lead_.lost(turn)) return handled;
    }
    return handled;
}

// A thread that waits for a call and leads meanwhile runs only functions that have been short, because others may keep it. One that is
// in the middle of sending a payload runs none.
[[gnu::always_inline]] inline bool NodeCore::leave_to_follower(const code::Function& function, Lead::Turn& turn) {
    if (turn.baton.own || !lead_.has_followers()) return false;
    if (function.pace.is_short() && turn.turn_beneath == nullptr) return false;
    leave_to_others(turn);
    return true;
}

// Runs the call of a function whose code is loaded. Only one thread leads at a time, so the code needs no count of those that run it.
// Nothing: the code is not loaded, or this thread leads from within a function.
[[gnu::always_inline]] inline std::optional<NodeCore::Taken> NodeCore::run_leading(code::Function& function,
                                                                                   PeerState* from,
                                                                                   const wire::Frame& frame,
                                                                                   Lead::Turn& turn) {
    if (leave_to_follower(function, turn)) return Taken::parked;
    const code::EntryPoint entry = running_ == nullptr ? cache_->enter_leading(function) : nullptr;
    if (entry == nullptr) return std::nullopt;
    Run begun{.function = &function,
              .entry = entry,
              .ran = function.ran.load(std::memory_order_relaxed),
              .link = from != nullptr ? from->link.get() : nullptr,
              .from = from};
    [[clang::always_inline]] return run(begun, frame, turn);
}

NodeCore::Taken NodeCore::on_call(PeerState* from, const wire::Frame& frame, Lead::Turn& turn) {
    if (frame.header.kind == Kind::ping) {
        (void)end_with_reply(frame.header, RanAs::resident, {}, nullptr);
        return Taken::done;
    }
    if (nested_ > kNestedMax)
        return refuse(from, frame,
                      Error(ErrorCode::overloaded,
                            fmt::format("{} has {} functions that wait for one another on one thread, the most it may",
                                        name(), kNestedMax)));
    if (nested_ > 0 && stack_left() < kStackReserveBytes)
        return refuse(
            from, frame,
            Error(
                ErrorCode::overloaded,
                fmt::format("what waits on one thread of {} ({} deep) has used up its stack but for {} KiB, which the "
                            "next function may need; call less deeply, or give that thread a larger stack",
                            name(), nested_, kStackReserveBytes / 1024)));
    std::optional<Parked>& parked = from != nullptr ? from->parked : local_parked_;
    const bool plain = (frame.header.flags & (wire::kNaming | wire::kParts)) == 0;
    if (plain && !parked && (from == nullptr || from->aliases.find(frame.header.handle) == nullptr)) {
        // The fast path: the code is there.
        if (code::Function* function = cache_->by_handle(frame.header.handle)) {
            if (must_wait_for_thread(*function, from)) return on_rare_call(from, frame, turn);
            if (const auto taken = run_leading(*function, from, frame, turn)) return *taken;
        }
    }
    return on_rare_call(from, frame, turn);
}

// By the name that the peer used.
void NodeCore::bind(PeerState& peer, const FunctionId& named, const code::Function& function) {
    sender_.send_or_cut(peer, {.kind = Kind::bind, .handle = function.handle, .node = peer.id}, named.raw(), {});
}

// Code that came in the frame. The frame's bytes are compared with those that were loaded for this function before, and
// run as that: from a copy of one's own, which the peer cannot change meanwhile, which is in the instruction cache, and which
// needs no mailbox that can be executed. Null: what came is no such code; the link is broken then. overloaded: this node has no room for it.
Result<code::Function*> NodeCore::unpack_inline(PeerState& from, const wire::Frame& frame) {
    const FunctionId id = named_function(frame);
    SeenInline& seen = seen_inline_[std::to_integer<std::size_t>(id.raw()[0]) % seen_inline_.size()];
    if (seen.id == id && seen.bytes.size() == frame.extra.size() &&
        std::memcmp(seen.bytes.data(), frame.extra.data(), seen.bytes.size()) == 0) {
        // Not where it was forgotten or evicted: then the frame has what is lacking.
        code::Function* function = cache_->by_handle(seen.handle);
        if (function == seen.function && function->target.load(std::memory_order_relaxed) != nullptr) return function;
    }
    ByteBuffer bytes(frame.extra.begin(), frame.extra.end());  // the peer can change the mailbox
    wire::InlineCode code;
    std::memcpy(&code, bytes.data() + sizeof id, sizeof code);
    const Bytes rest = Bytes(bytes).subspan(sizeof id + sizeof code);
    const auto wrong = [&from](const std::string& what) {
        from.link->break_with(Error(ErrorCode::invalid, fmt::format("{} sent inline code {}", who(from), what)));
        return nullptr;
    };
    if (std::size_t{code.manifest_bytes} + code.slice_bytes > rest.size()) return wrong("that was changed on its way");
    const Result<std::shared_ptr<PackageStore>> store = PackageStore::from_manifest(rest.first(code.manifest_bytes));
    if (!store) return wrong(store.error().message());
    const auto& ids = (*store)->function_ids();
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) return wrong("of another function than it names");
    if (const Status added = (*store)->add_slice(code.slice, rest.subspan(code.manifest_bytes, code.slice_bytes));
        !added)
        return wrong(added.error().message());
    const Result<std::shared_ptr<PackageStore>> kept = cache_->add(*store, false);
    if (!kept && kept.error().code() == ErrorCode::overloaded)
        return fail(ErrorCode::overloaded, "a function on {}: {}", name(), kept.error().message());
    if (!kept) return wrong(kept.error().message());
    from.code_sent.insert((*kept)->digest());
    code::Function* function = cache_->find(id);
    if (function == nullptr) return nullptr;
    seen = {function, function->handle, id, std::move(bytes)};
    bind(from, id, *function);
    return function;
}

// True: all places for long functions are taken, and the call waits. A function that has never run starts as long as a follower could take
// the lead over; so does one that may have been long by accident.
bool NodeCore::waits_where_places_are_rare(const code::Function& function) const {
    if (places_taken() < options_.threads) return false;
    if (function.pace.is_long() && !function.pace.may_be_tried()) return true;
    return !lead_.has_followers() && !function.pace.is_short();
}

// A call by name, one that waited for its code, or one whose code is not loaded.
NodeCore::Taken NodeCore::on_rare_call(PeerState* from, const wire::Frame& frame, Lead::Turn& turn) {
    std::optional<Parked>& parked = from != nullptr ? from->parked : local_parked_;
    const std::uint8_t naming = wire::naming_of(frame.header);
    code::Function* function = nullptr;
    if (from != nullptr && !parked && naming == wire::kInline) {
        const Result<code::Function*> unpacked = unpack_inline(*from, frame);
        if (!unpacked) return refuse(from, frame, unpacked.error());
        function = *unpacked;
        if (function == nullptr) return Taken::parked;  // the link is broken
        if (!must_wait_for_thread(*function, from)) {
            if (const auto taken = run_leading(*function, from, frame, turn)) return *taken;
        }
    } else if (naming == wire::kByEither) {
        wire::Either either;
        std::memcpy(&either, frame.extra.data(), sizeof either);
        const Result<code::Function*> found = either_function(either);
        if (!found) {
            parked.reset();
            return refuse(from, frame, found.error());
        }
        function = *found;
    } else if (naming != wire::kByHandle) {
        function = cache_->find(named_function(frame));
        if (function == nullptr) function = own_shipped(named_function(frame));
    } else if (const FunctionId* const alias = from != nullptr ? from->aliases.find(frame.header.handle) : nullptr) {
        function = cache_->find(*alias);
    } else {
        function = cache_->by_handle(frame.header.handle);
    }
    if (parked && parked->cannot_run) {
        const Error why(parked->cannot_run->code(),
                        fmt::format("{} on {}: {}", function != nullptr ? function->name : "a function", name(),
                                    parked->cannot_run->message()));
        parked.reset();
        return refuse(from, frame, why);
    }
    if (function == nullptr && options_.listen.empty()) return refuse(from, frame, takes_no_code(name()));
    if (function == nullptr) return park(from, frame, nullptr, true);
    const auto held_until = own_threads_.quiet().held_until(*function, from);
    if (held_until && Clock::now() >= *held_until) {
        parked.reset();
        return refuse(from, frame, QuietRuns::too_many(name(), *function));
    }
    if (must_wait_for_thread(*function, from)) {
        const Taken taken = park(from, frame, function, false);
        parked->for_thread = true;
        parked->held_until = held_until;
        parked->compiling.reset();
        return taken;
    }
    if (leave_to_follower(*function, turn)) return Taken::parked;
    auto entered = cache_->enter(*function);
    if (const auto* awaited = std::get_if<code::Awaited>(&entered))
        return park(from, frame, function, *awaited == code::Awaited::code);
    parked.reset();
    if (const auto* error = std::get_if<Error>(&entered)) return refuse(from, frame, *error);
    if (from != nullptr && (naming == wire::kById || naming == wire::kByEither))
        bind(*from, named_function(frame), *function);
    auto& held = std::get<code::Entered>(entered);
    Run begun{.function = function,
              .entry = held.entry(),
              .ran = held.ran(),
              .link = from != nullptr ? from->link.get() : nullptr,
              .from = from,
              .entered = std::move(held)};
    if ((frame.header.flags & wire::kParts) == 0) return run(begun, frame, turn);
    wire::Staged which;
    std::memcpy(&which, frame.payload.data(), sizeof which);
    const std::optional<LargeBytes> payload = from != nullptr ? from->staged.take(which) : std::nullopt;
    if (!payload) {
        if (from != nullptr)
            from->link->break_with(Error(ErrorCode::invalid, who(*from) + " sent a call without its parts"));
        return Taken::parked;
    }
    staged_bytes_ -= payload->room();
    begun.is_large = true;
    wire::Frame whole = frame;
    whole.payload = payload->bytes();
    return run(begun, whole, turn);
}

// A function of the caller's program: this program's own, where it has it and means the same by it; else the one that travels.
Result<code::Function*> NodeCore::either_function(const wire::Either& either) {
    code::Function* resident = cache_->find(either.resident);
    if (resident == nullptr) {
        if (const Resident* own = Residents::find(either.resident)) {
            ROVE_TRY(resident, cache_->add_resident(own->id, own->name, own->entry));
        }
    }
    if (resident != nullptr) {
        const Resident* own = Residents::find(either.resident);
        if (own != nullptr && own->schema == either.schema && !options_.listen.empty())
            detail::say_if_other_code(*own, either, name());
        if (own == nullptr || own->schema == either.schema) return resident;
        if (either.shipped == FunctionId{})
            return fail(
                ErrorCode::invalid,
                "{} on {}: the types that it takes or gives are others there (schema {:08x}) than in the caller's "
                "program ({:08x}); build both from the same source",
                own->name, name(), own->schema, either.schema);
    }
    if (either.shipped == FunctionId{})
        return fail(
            ErrorCode::unsupported,
            "it is not resident on {}, and the program that called it does not carry its code; build that program with "
            "rove_add_executable(), or this one with the same source",
            name());
    if (options_.listen.empty()) return tl::unexpected<Error>(takes_no_code(name()));
    return cache_->find(either.shipped);
}

// Ends a call that is not run, and forgets what came in parts for it.
NodeCore::Taken NodeCore::refuse(PeerState* from, const wire::Frame& frame, const Error& why) {
    if (from != nullptr && (frame.header.flags & wire::kParts) != 0) {
        wire::Staged which;
        std::memcpy(&which, frame.payload.data(), sizeof which);
        forget_parts(*from, which.number);
    }
    end_with_error(frame.header, why);
    return Taken::done;
}

NodeCore::Taken NodeCore::run(Run& run, const wire::Frame& frame, Lead::Turn& turn) {
    run.watch = &turn.watch;
    run.on_own_thread = turn.baton.own;
    begin_run(run);
    go_beneath(turn);
    Bytes payload = frame.payload;
    ByteBuffer copy;
    if (run.holds) {  // it is known to run long: the mailbox does not wait for it, where there is memory
        const bool in_parts = (frame.header.flags & wire::kParts) != 0;
        if (!in_parts && copied(payload, copy)) payload = copy;
        if ((in_parts || payload.data() == copy.data()) && run.let_go()) lead_.wake();
    }
    const bool in_mailbox = frame.header.kind == Kind::call && run.link != nullptr && copy.empty() &&
                            (frame.header.flags & wire::kParts) == 0;
    const InUserCode outer = std::exchange(in_user_code_, {this, turn.baton.term, &run});
    turn.lock.unlock();
    bool ended = true;
    if (frame.header.kind != Kind::batch) {
        ended = run_one(run, frame.header, payload, in_mailbox);
    } else {
        const std::size_t bytes = frame.header.generation;
        const std::size_t stride = wire::batch_stride(bytes);
        for (std::size_t at = 0; at < payload.size() && bytes <= payload.size() - at; at += stride)
            (void)run_one(run, frame.header, payload.subspan(at, bytes), false);
    }
    [[clang::always_inline]] turn.lock.lock();
    in_user_code_ = outer;
    come_up(turn);
    end_run(run);
    if (!ended) (void)end_with_reply(frame.header, run.ran, {}, nullptr);
    return run.handed_over ? Taken::held : Taken::done;
}

// Without the lock. True: the call has ended, or nobody waits for its end.
bool NodeCore::run_one(Run& run, const wire::FrameHeader& call, Bytes payload, bool in_mailbox) {
    rove_here here{this, run.function, call, run.ran};
    here.payload_read = in_mailbox ? &run.payload_read : nullptr;
    if (run.is_large) here.large_read_at = &run.large_read_at;
    if (!in_mailbox && call.kind == Kind::call) run.payload_read = true;
    run_here(run, here, payload);
    if (here.answer_lost && !here.ended) end_without_answer(here);
    return here.ended || (call.flags & wire::kNoReply) != 0;
}

// The function has been told that there is no memory for what it answers, and has not answered anything else since: this is no success.
void NodeCore::end_without_answer(rove_here& here) noexcept {
    reply_error(here.call, rove::no_memory());
    here.ended = true;
}

// Inlined in run_one, so that calls pay nothing for its second caller. Nothing leaves it: whoever called it does not have the lock.
[[gnu::always_inline]] void NodeCore::run_here(Run& run, rove_here& here, Bytes payload) noexcept {
    run.here = &here;
    const auto let_out = [&](const std::string& what) {
        if (here.gathering != nullptr) here.gathering->skip_rest(here);
        if (here.ended) return;
        reply_error(here.call, Error(ErrorCode::failed,
                                     fmt::format("{} on {} let an exception out{}", run.function->name, name(), what)));
        here.ended = true;
    };
    try {
        try {
            call_out(run, [&] { run.entry(&here, payload.data(), payload.size()); });
        } catch (const abi::__forced_unwind&) {
            keep_thread(&here);
        } catch (const Error&) {  // of code that is compiled without exceptions
            (void)rove_fail_caught(&here);
        } catch (const std::exception& error) {
            let_out(": " + words_of(error));
        } catch (...) {
            let_out(" that is no std::exception");
        }
    } catch (const std::bad_alloc&) {  // for the words
        here.answer_lost = true;
    }
    stay_in_parent(run.function->name);
}

// Leaves the frame where it is; the ones behind it wait as well. Asks for the code once.
NodeCore::Taken NodeCore::park(PeerState* from, const wire::Frame& frame, const code::Function* function, bool ask) {
    std::optional<Parked>& parked = from != nullptr ? from->parked : local_parked_;
    if (!parked) parked = Parked{.since = Clock::now()};
    parked->for_thread = false;
    parked->held_until.reset();
    if (function != nullptr)
        parked->function = function->id;
    else if (wire::naming_of(frame.header) == wire::kByEither)
        std::memcpy(&parked->function, frame.extra.data() + offsetof(wire::Either, shipped), sizeof parked->function);
    else if (wire::naming_of(frame.header) != wire::kByHandle)
        parked->function = named_function(frame);
    parked->handle = frame.header.handle;
    if (ask)
        parked->compiling.reset();
    else if (!parked->compiling)
        parked->compiling = Clock::now();
    if (ask && (!parked->asked || (parked->ask_again && Clock::now() >= *parked->ask_again))) {
        if (!parked->asked) parked->since = Clock::now();  // until now it waited for something else
        parked->asked = true;
        parked->ask_again.reset();
        exchange_.ask(from, *parked, frame.header.node);
    }
    return Taken::parked;
}

// Whoever was asked; and among nodes that joined one another any of them: they send calls on.
bool NodeCore::may_answer(const PeerState& from, const CallSlot& slot) {
    return slot.peer == &from || (from.is_fellow() && (slot.peer == nullptr || slot.peer->is_fellow()));
}

void NodeCore::on_reply(PeerState* from, const wire::Frame& frame) {
    const wire::FrameHeader& header = frame.header;
    const bool mine = header.node == (from != nullptr ? from->my_id : id());
    if (!mine) return sender_.pass_reply_on(*from, frame);  // what this node tells itself is its own
    CallSlot* slot = calls_.flying({header.call, header.generation});
    if (slot == nullptr) return on_late_reply(from, frame);
    if (from != nullptr && !may_answer(*from, *slot)) return;
    if ((header.flags & wire::kError) != 0) {
        std::string_view message = as_text(frame.payload).substr(0, wire::kErrorBytesMax), type;
        if (const std::size_t zero = message.find('\0');
            (header.flags & wire::kThrown) != 0 && zero != std::string_view::npos) {
            type = message.substr(0, zero);
            message.remove_prefix(zero + 1);
        }
        try {
            slot->end(Error::told(static_cast<ErrorCode>(header.status), std::string(message), header.handle,
                                  std::string(type)));
        } catch (const std::bad_alloc&) {  // for its words
            slot->end(Error(static_cast<ErrorCode>(header.status), "no memory"));
        }
    } else {
        slot->node = header.handle;
        slot->ran = static_cast<RanAs>(header.status);
        slot->hops = header.hops;
        if ((header.flags & wire::kParts) != 0)
            slot->end_gathered();
        else
            calls_.end(*slot, frame.payload);
    }
    call_ended(*slot);
}

}  // namespace rove
