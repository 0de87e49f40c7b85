#include "engine/dispatcher.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>

#include "base/log.hpp"
#include "base/stack.hpp"
#include "base/words_of.hpp"
#include "engine/gathering.hpp"
#include "engine/here.hpp"
#include "peer/names.hpp"
#include "rove/edge.h"
#include "wire/lists.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

// How long one peer's calls may take before another's are looked at, and after how many of them the clock is looked at: a look costs as
// much as a small function, so there are fewer where they are small, and fewest where those of a whole turn were.
constexpr auto kTurnMax = std::chrono::milliseconds(1);
constexpr unsigned kLooksAtClock = 4, kLooksAtClockMax = 32;

}  // namespace

// In few words where there is no memory for more.
static Error no_memory(const std::string& node, const PeerState& peer) REQUIRES(lock_of<EngineLock>) {
    try {
        return {ErrorCode::overloaded, fmt::format("{} has no memory for what {} sent", node, who(peer))};
    } catch (const std::bad_alloc&) {
        return {ErrorCode::overloaded, "no memory"};
    }
}

// While a function runs the lock is free: the peer may be met again, and then it has another link. Its old link stays mapped
// until nothing runs (LinkEnds). Where the lead was lost, another thread has the peer, and nothing of it is touched any more.
unsigned Dispatcher::serve(PeerState& peer, Lead::Turn& turn) try {
    fabric::Link* const link = peer.link().get();
    unsigned handled = 0;
    if (peer.has_frames_waiting()) {
        handled = sender_.flush(peer);
        exchange_.answer_more(peer);
    }
    TimePoint code_since{};
    wire::Frame frame;
    // Prompt frames first: code is among them, and is sent before the call that needs it.
    while (handled < kBatchMax && link->next(Traffic::prompt, frame)) {
        if (!peer.sends_plain_reply(frame)) {
            if (const auto wrong = checks_.wrong_with(peer, frame, Traffic::prompt)) {
                link->break_with(*wrong);
                break;
            }
        }
        const bool code = frame.header.kind == Kind::code;
        if (code && code_since == TimePoint{}) code_since = Clock::now();
        on_prompt_frame(peer, frame);
        link->release(Traffic::prompt);
        ++handled;
        if (!code) continue;
        run_parked(turn);
        if (lead_.lost(turn) || peer.link().get() != link) return handled;
        if (Clock::now() - code_since > kTurnMax) break;
    }
    handled += serve_calls(peer, turn);
    if (lead_.lost(turn) || peer.link().get() != link) return handled;
    if (link->broken() != nullptr && !peer.lost()) link_ends_.notice(peer);
    return handled;
} catch (const std::bad_alloc&) {  // it costs this link, and not the process
    if (!lead_.lost(turn) && peer.link()) peer.link()->break_with(no_memory(name_(), peer));
    return 1;
}

// The handler of each kind of frame that may arrive among calls.
struct Dispatcher::AmongCalls {
    using Take = Taken (*)(Dispatcher& self, PeerState& from, wire::Frame& frame, Lead::Turn& turn);
    static constexpr std::array<Take, wire::kKindRules.size()> kTakers = [] {
        std::array<Take, wire::kKindRules.size()> takers{};
        const auto takes = [&takers](Kind kind, Take take) { takers[static_cast<std::size_t>(kind)] = take; };
        const auto runs = [](Dispatcher& self, PeerState& from, wire::Frame& frame, Lead::Turn& turn)
                              REQUIRES(lock_of<EngineLock>) { return self.run_next(from, frame, turn); };
        takes(Kind::call, runs);
        takes(Kind::batch, runs);
        takes(Kind::ping, runs);
        takes(Kind::part, [](Dispatcher& self, PeerState& from, wire::Frame& frame, Lead::Turn& turn)
                              REQUIRES(lock_of<EngineLock>) { return self.on_part(from, frame, turn); });
        takes(Kind::code, [](Dispatcher& self, PeerState& from, wire::Frame& frame, Lead::Turn& /*turn*/)
                              REQUIRES(lock_of<EngineLock>) {
                                  self.exchange_.on_code(from, frame);  // of the tier that follows
                                  return Taken::done;
                              });
        return takers;
    }();
    static_assert(std::ranges::all_of(wire::kKindRules, [](const wire::KindRule& rule) {
        return rule.among_calls == (kTakers[static_cast<std::size_t>(rule.kind)] != nullptr);
    }));
};

// At most once: a frame is given back to the link that it was taken from exactly once. This loop does so as soon as its function has
// returned, whatever else has happened; or the function's run holds the frame, and gives it back; or a Gathering, which reads its
// arguments out of this mailbox, gives back each part and the call (Gathering::look, take_call). run_posts() gives back each of its posts but the
// last, and that one too where it sets `given_back`.
unsigned Dispatcher::serve_calls(PeerState& peer, Lead::Turn& turn) {
    unsigned handled = 0, look_at = peer.calls.are_quick() ? kLooksAtClockMax : kLooksAtClock;
    TimePoint begun = peer.calls.are_quick() ? peer.calls.looked_at() : TimePoint{};  // not later than this turn
    wire::Frame frame;
    fabric::Link* const link = peer.link().get();
    if (peer.calls.reader() != nullptr) peer.calls.reader()->give_back_if_long();
    if (is_read_by_a_run(peer)) return 0;
    while (link != nullptr && peer.link().get() == link && handled < kBatchMax && !peer.has_backlog() &&
           link->next(Traffic::calls, frame)) {
        Taken taken = Taken::parked;
        bool given_back = false;
        if (FrameChecks::is_plain(peer, frame)) {
            taken = (frame.header.flags & wire::kNoReply) != 0
                        ? run_posts(peer, frame, turn, handled, std::min(look_at, kBatchMax), given_back)
                        : run_next(peer, frame, turn);
        } else {
            if (peer.calls.reader() != nullptr && peer.calls.reader()->takes(frame)) break;
            if (const auto wrong = checks_.wrong_with(peer, frame, Traffic::calls)) {
                link->break_with(*wrong);
                break;
            }
            if (frame.header.kind == Kind::code) {  // each piece may take long
                if (begun == TimePoint{}) begun = Clock::now();
                look_at = handled;
            }
            taken = AmongCalls::kTakers[static_cast<std::size_t>(frame.header.kind)](*this, peer, frame, turn);
        }
        if (taken == Taken::parked) break;
        ++handled;
        if (taken == Taken::held) break;  // another thread leads
        if (taken == Taken::gone) continue;
        if (!given_back) link->release(Traffic::calls);
        if (handled < look_at) continue;
        const TimePoint now = Clock::now();
        if (begun == TimePoint{}) begun = now;
        const bool in_time = now - begun <= kTurnMax;
        peer.calls.look(now, in_time && (peer.calls.are_quick() || handled == kBatchMax));
        if (!in_time) break;
        look_at = handled + std::min(look_at, kLooksAtClockMax);
    }
    return handled;
}

// The call at the head of a mailbox, if this thread runs calls.
[[clang::always_inline]] inline Dispatcher::Taken Dispatcher::run_next(PeerState& peer, wire::Frame& frame,
                                                                       Lead::Turn& turn) {
    if (!turn.runs_functions()) {
        leave_to_others(turn);
        return Taken::parked;
    }
    if ((frame.header.flags & wire::kNoReply) == 0) peer.link()->own_next(Traffic::prompt);
    if (frame.header.node == peer.id() && peer.id() != peer.back()) frame.header.node = peer.back();
    if (frame.header.kind == Kind::call && ThreadRuns::nested() == 0) {  // inlined: 30 instructions less for each call
        [[clang::always_inline]] return begin_call(&peer, frame, turn);
    }
    return on_call(&peer, frame, turn);
}

// The function of a plain post, if it is known to be short and can run at once; otherwise null.
[[gnu::always_inline]] inline code::Function* Dispatcher::quick(PeerState& peer, const wire::Frame& post) {
    if (peer.calls.parked || peer.code.aliases.find(post.header.handle) != nullptr) return nullptr;
    code::Function* const function = cache_->by_handle(post.header.handle);
    if (function == nullptr || !function->pace.is_short() || function->pace.is_long() ||
        runner_.must_wait_for_thread(*function, &peer))
        return nullptr;
    return function;
}

// Posts often repeat one function. What the first of them needs is looked up once for those with the same header, which about halves the
// receiver's instructions. The lock is released for each of them, and one that takes long loses the lead.
Dispatcher::Taken Dispatcher::run_posts(PeerState& peer, wire::Frame& frame, Lead::Turn& turn, unsigned& handled,
                                        unsigned most, bool& given_back) {
    const bool may_run = frame.header.kind == Kind::call &&
                         wire::has_plain_flags(wire::rule_of(Kind::call), frame.header) && turn.runs_functions() &&
                         turn.large_beneath == nullptr && ThreadRuns::nested() == 0 && runner_.leading() == nullptr;
    code::Function* const function = may_run ? quick(peer, frame) : nullptr;
    const code::EntryPoint entry = function != nullptr ? runner_.code().enter(*function) : nullptr;
    if (entry == nullptr) return run_next(peer, frame, turn);
    fabric::Link& link = *peer.link();
    Run run{.function = function,
            .entry = entry,
            .ran = function->ran.load(std::memory_order_relaxed),
            .link = &link,
            .from = &peer};
    runner_.begin(run, turn);
    rove_here here{&engine_, function, wire::context_of(frame), run.ran};
    if (here.call.node == peer.id()) here.call.node = peer.back();
    here.payload_read = &run.payload_read;
    bool release_failed = false;  // is_next() must not throw, because the run would not be ended
    const auto run_it = [&] {
        run_here(run, here, frame.payload);
        if (here.answer_lost && !here.ended) end_without_answer(here);
    };
    const auto is_next = [&]() REQUIRES(lock_of<EngineLock>) {
        if (here.has_left_something() || handled + 1 >= most || peer.link().get() != &link || peer.has_backlog())
            return false;
        given_back = true;
        try {
            link.release(Traffic::calls);
        } catch (const std::bad_alloc&) {
            release_failed = true;
            return false;
        }
        if (!link.next(Traffic::calls, frame, /*only_alike=*/true) || quick(peer, frame) != function ||
            function->target.load(std::memory_order_relaxed) != entry)
            return false;
        given_back = false;
        ++handled;
        here.ended = false;
        return true;
    };
    runner_.outside(run, turn, run_it, is_next);
    if (release_failed) throw std::bad_alloc();
    return run.handed_over ? Taken::held : Taken::done;
}

// A function that reads its payload as it arrives begins with the first part. All other parts are put together.
Dispatcher::Taken Dispatcher::on_part(PeerState& from, const wire::Frame& frame, Lead::Turn& turn) {
    if (gatherings_.runs_part(from, frame, turn)) return lead_.lost(turn) ? Taken::held : Taken::gone;
    return payload_parts_.add(from, frame) ? Taken::done : Taken::parked;
}

// The call at the head of a mailbox is not for this thread. A quiet thread leads only if no other can, so it offers the lead to none.
void Dispatcher::leave_to_others(Lead::Turn& turn) {
    if (turn.baton.quiet || !lead_.has_followers()) return;
    lead_.give_for_long(turn);
}

// The handler of each kind of frame that may arrive in the prompt ring.
struct Dispatcher::AmongPrompt {
    using Take = void (*)(Dispatcher& self, PeerState& from, const wire::Frame& frame);
    static constexpr std::array<Take, wire::kKindRules.size()> kTakers = [] {
        std::array<Take, wire::kKindRules.size()> takers{};
        const auto takes = [&takers](Kind kind, Take take) { takers[static_cast<std::size_t>(kind)] = take; };
        const auto on_answer = [](Dispatcher& self, PeerState& from, const wire::Frame& frame)
                                   REQUIRES(lock_of<EngineLock>) { self.replies_.receive(from, frame); };
        takes(Kind::reply, on_answer);
        takes(Kind::part, on_answer);
        takes(Kind::bind, [](Dispatcher&, PeerState& from, const wire::Frame& frame)
                              REQUIRES(lock_of<EngineLock>) { CodeExchange::on_bind(from, frame); });
        takes(Kind::code, [](Dispatcher& self, PeerState& from, const wire::Frame& frame)
                              REQUIRES(lock_of<EngineLock>) { self.exchange_.on_code(from, frame); });
        takes(Kind::need, [](Dispatcher& self, PeerState& from, const wire::Frame& frame)
                              REQUIRES(lock_of<EngineLock>) { self.exchange_.on_need(from, frame); });
        takes(Kind::lack, [](Dispatcher& self, PeerState& from, const wire::Frame& frame)
                              REQUIRES(lock_of<EngineLock>) { self.exchange_.on_lack(from, frame); });
        takes(Kind::load, [](Dispatcher& self, PeerState& from, const wire::Frame& frame)
                              REQUIRES(lock_of<EngineLock>) { self.on_load(from, frame); });
        return takers;
    }();
    static_assert(std::ranges::all_of(wire::kKindRules, [](const wire::KindRule& rule) {
        return rule.among_prompt == (kTakers[static_cast<std::size_t>(rule.kind)] != nullptr);
    }));
};

// Precondition: the frame has passed the checks, so its kind has a taker.
void Dispatcher::on_prompt_frame(PeerState& from, const wire::Frame& frame) {
    AmongPrompt::kTakers[static_cast<std::size_t>(frame.header.kind)](*this, from, frame);
}

// Runs parked calls as soon as their code has arrived, before other code can have it evicted.
void Dispatcher::run_parked(Lead::Turn& turn) {
    if (!turn.runs_functions()) return;
    for (std::size_t i = 0; i < peers_.warm().size() && !lead_.lost(turn); ++i) {
        const std::shared_ptr<PeerState> peer = peers_.warm()[i].shared_from_this();
        if (peer->calls.parked) (void)serve_calls(*peer, turn);
    }
    if (local_.parked() && !lead_.lost(turn)) (void)serve_local(turn);
}

// Frames that this node sent to itself: the same as any other, from a queue instead of a mailbox.
unsigned Dispatcher::serve_local(Lead::Turn& turn) {
    unsigned handled = 0;
    while (!local_.is_empty() && handled < kBatchMax) {
        std::list<ByteBuffer> first = local_.take_first();
        const wire::Frame frame = wire::frame_in(first.front());
        Taken taken = Taken::done;
        try {
            taken = on_call(nullptr, frame, turn);
        } catch (const std::bad_alloc&) {  // it costs this call, and not the process
            answers_.end_with_error(wire::context_of(frame), rove::no_memory());
            if (!lead_.lost(turn)) local_.parked().reset();
        }
        if (taken == Taken::parked) {
            local_.put_back(std::move(first));
            return handled;
        }
        ++handled;
        if (lead_.lost(turn)) return handled;
    }
    return handled;
}

// A thread that leads while it waits for a call runs only functions that have been short, because others could delay it. A thread that is
// sending a large payload runs none.
[[gnu::always_inline]] inline bool Dispatcher::leave_to_follower(const code::Function& function, Lead::Turn& turn) {
    if (turn.baton.own || !lead_.has_followers()) return false;
    if (function.pace.is_short() && turn.large_beneath == nullptr) return false;
    leave_to_others(turn);
    return true;
}

// Runs the call of a function whose code is loaded. Only one thread leads at a time, so the code needs no count of those that run it.
// Nothing: the code is not loaded, or this thread leads from within a function.
[[gnu::always_inline]] inline std::optional<Dispatcher::Taken> Dispatcher::run_leading(code::Function& function,
                                                                                       PeerState* from,
                                                                                       const wire::Frame& frame,
                                                                                       Lead::Turn& turn) {
    if (leave_to_follower(function, turn)) return Taken::parked;
    const code::EntryPoint entry = runner_.leading() == nullptr ? runner_.code().enter(function) : nullptr;
    if (entry == nullptr) return std::nullopt;
    Run begun{.function = &function,
              .entry = entry,
              .ran = function.ran.load(std::memory_order_relaxed),
              .link = from != nullptr ? from->link().get() : nullptr,
              .from = from};
    [[clang::always_inline]] return run(begun, frame, turn);
}

Dispatcher::Taken Dispatcher::on_call(PeerState* from, const wire::Frame& frame, Lead::Turn& turn) {
    if (frame.header.kind == Kind::ping) {
        answers_.end_at_once(wire::context_of(frame), RanAs::resident);
        return Taken::done;
    }
    if (ThreadRuns::nested() > kNestedMax)
        return refuse(from, frame,
                      Error(ErrorCode::overloaded,
                            fmt::format("{} has {} functions that wait for one another on one thread, the most it may",
                                        name_(), kNestedMax)));
    if (ThreadRuns::nested() > 0 && stack_left() < kStackReserveBytes)
        return refuse(
            from, frame,
            Error(
                ErrorCode::overloaded,
                fmt::format("what waits on one thread of {} ({} deep) has used up its stack but for {} KiB, which the "
                            "next function may need; call less deeply, or give that thread a larger stack",
                            name_(), ThreadRuns::nested(), kStackReserveBytes / 1024)));
    return begin_call(from, frame, turn);
}

// The fast path: the code is there, and nothing has to be asked first.
Dispatcher::Taken Dispatcher::begin_call(PeerState* from, const wire::Frame& frame, Lead::Turn& turn) {
    std::optional<Parked>& parked = parked_of(from);
    if (wire::has_plain_flags(wire::rule_of(Kind::call), frame.header) && !parked &&
        (from == nullptr || from->code.aliases.find(frame.header.handle) == nullptr)) {
        if (code::Function* function = cache_->by_handle(frame.header.handle)) {
            if (runner_.must_wait_for_thread(*function, from)) return on_rare_call(from, frame, turn);
            if (const auto taken = run_leading(*function, from, frame, turn)) return *taken;
        }
    }
    return on_rare_call(from, frame, turn);
}

// The function that a call's frame names. Null: it is not known here, or the link is broken.
Result<code::Function*> Dispatcher::function_of(PeerState* from, const wire::Frame& frame) {
    const std::uint8_t naming = wire::naming_of(frame.header);
    if (naming == wire::kByHandle) {
        const FunctionId* const alias = from != nullptr ? from->code.aliases.find(frame.header.handle) : nullptr;
        if (alias != nullptr) return cache_->find(*alias);
        code::Function* const function = cache_->by_handle(frame.header.handle);
        const std::optional<Parked>& parked = parked_of(from);
        if (function != nullptr || !parked || parked->handle != frame.header.handle || parked->function == FunctionId{})
            return function;
        return cache_->find(parked->function);  // it was forgotten while the call waited, and has arrived again
    }
    if (naming == wire::kByEither) {
        const auto either = wire::copy_of<wire::Either>(frame.extra);
        return functions_.by_either(either);
    }
    // The code within a parked call's frame was unpacked before.
    if (naming == wire::kInline && from != nullptr && !from->calls.parked) return functions_.in_line(*from, frame);
    return functions_.by_id(FunctionFinder::named_in(frame));
}

// A call by name, one that waited for its code, or one whose code is not loaded.
Dispatcher::Taken Dispatcher::on_rare_call(PeerState* from, const wire::Frame& frame, Lead::Turn& turn) {
    std::optional<Parked>& parked = parked_of(from);
    const std::uint8_t naming = wire::naming_of(frame.header);
    const bool unpacks = from != nullptr && !parked && naming == wire::kInline;
    const Result<code::Function*> found = function_of(from, frame);
    if (!found) return refuse(from, frame, found.error());
    code::Function* const function = *found;
    if (unpacks) {
        if (function == nullptr) return Taken::parked;  // the link is broken
        if (!runner_.must_wait_for_thread(*function, from)) {
            if (const auto taken = run_leading(*function, from, frame, turn)) return *taken;
        }
    }
    if (const Error* const why_not = parked ? parked->why_not() : nullptr) {
        const Error why(why_not->code(),
                        fmt::format("{} on {}: {}", function != nullptr ? function->name : "a function", name_(),
                                    why_not->message()));
        return refuse(from, frame, why);
    }
    if (function == nullptr && options_.listen.empty()) return refuse(from, frame, functions_.takes_no_code());
    if (function == nullptr) return park_for_code(from, frame, nullptr);
    const auto held_until = own_threads_.quiet().held_until(*function, from);
    if (held_until && Clock::now() >= *held_until) return refuse(from, frame, QuietRuns::too_many(name_(), *function));
    if (runner_.must_wait_for_thread(*function, from)) {
        park(from, frame, function).wait_for_thread(held_until);
        return Taken::parked;
    }
    if (leave_to_follower(*function, turn)) return Taken::parked;
    auto entered = cache_->enter(*function, from != nullptr ? from->back() : kNoNode);
    if (const auto* awaited = std::get_if<code::Awaited>(&entered)) {
        if (*awaited == code::Awaited::code) return park_for_code(from, frame, function);
        park(from, frame, function).wait_for_cache(Clock::now());
        return Taken::parked;
    }
    parked.reset();
    if (const auto* error = std::get_if<Error>(&entered)) return refuse(from, frame, *error);
    if (from != nullptr && (naming == wire::kById || naming == wire::kByEither))
        functions_.bind(*from, FunctionFinder::named_in(frame), *function);
    return run_entered(*function, std::get<code::Entered>(std::move(entered)), from, frame, turn);
}

// A call whose code is loaded and held. Its payload may have been sent in parts.
Dispatcher::Taken Dispatcher::run_entered(code::Function& function, code::Entered held, PeerState* from,
                                          const wire::Frame& frame, Lead::Turn& turn) {
    Run begun{.function = &function,
              .entry = held.entry(),
              .ran = held.ran(),
              .link = from != nullptr ? from->link().get() : nullptr,
              .from = from,
              .entered = std::move(held)};
    if ((frame.header.flags & wire::kParts) == 0) return run(begun, frame, turn);
    const auto which = wire::copy_of<wire::Staged>(frame.payload);
    const std::optional<LargeBytes> payload = from != nullptr ? payload_parts_.take(*from, which) : std::nullopt;
    if (!payload) {
        if (from != nullptr)
            from->link()->break_with(Error(ErrorCode::invalid, who(*from) + " sent a call without its parts"));
        return Taken::parked;
    }
    begun.is_large = true;
    wire::Frame whole = frame;
    whole.payload = payload->bytes();
    return run(begun, whole, turn);
}

// Ends the call at the head of its mailbox, which is not run, and forgets what came in parts for it and what it has waited for.
Dispatcher::Taken Dispatcher::refuse(PeerState* from, const wire::Frame& frame, const Error& why) {
    if (from != nullptr && (frame.header.flags & wire::kParts) != 0) {
        const auto which = wire::copy_of<wire::Staged>(frame.payload);
        payload_parts_.forget(*from, which.number);
    }
    answers_.end_with_error(wire::context_of(frame), why);
    parked_of(from).reset();  // what is parked is of this frame, or of none
    return Taken::done;
}

Dispatcher::Taken Dispatcher::run(Run& run, const wire::Frame& frame, Lead::Turn& turn) {
    runner_.begin(run, turn);
    Bytes payload = frame.payload;
    ByteBuffer copy;
    if (run.holds) {  // it is known to run long: the mailbox does not wait for it, where there is memory
        const bool in_parts = (frame.header.flags & wire::kParts) != 0;
        if (!in_parts && copied(payload, copy)) payload = copy;
        if ((in_parts || payload.data() == copy.data()) && run.let_go()) lead_.wake();
    }
    const bool in_mailbox = frame.header.kind == Kind::call && run.link != nullptr && copy.empty() &&
                            (frame.header.flags & wire::kParts) == 0;
    if (!in_mailbox && frame.header.kind == Kind::call) run.payload_read = true;
    const wire::CallContext call = wire::context_of(frame);
    bool ended = true;
    runner_.outside(run, turn, [&]() __attribute__((always_inline)) {
        if (frame.header.kind != Kind::batch) {
            ended = run_one(run, call, payload, in_mailbox);
            return;
        }
        const std::size_t bytes = frame.header.generation;
        const std::size_t stride = wire::batch_stride(bytes);
        for (std::size_t at = 0; at < payload.size() && bytes <= payload.size() - at; at += stride)
            (void)run_one(run, call, payload.subspan(at, bytes), false);
    });
    if (!ended) answers_.end_at_once(call, run.ran);
    return run.handed_over ? Taken::held : Taken::done;
}

// Without the lock. True: the call has ended, or nobody waits for its end.
bool Dispatcher::run_one(Run& run, const wire::CallContext& call, Bytes payload, bool in_mailbox) {
    rove_here here{&engine_, run.function, call, run.ran};
    here.payload_read = in_mailbox ? &run.payload_read : nullptr;
    if (run.is_large) here.large_read_at = &run.large_read_at;
    run_here(run, here, payload);
    if (here.answer_lost && !here.ended) end_without_answer(here);
    return here.ended || !call.wants_reply;
}

// The function got the error that there is no memory for its answer, and has returned without another one: its call must not end as a success.
void Dispatcher::end_without_answer(rove_here& here) noexcept {
    answers_.reply_error(here.call, rove::no_memory());
    here.ended = true;
}

// Inlined in run_one, so that calls pay nothing for its second caller. Throws nothing, because its caller does not hold the lock.
[[gnu::always_inline]] void Dispatcher::run_here(Run& run, rove_here& here, Bytes payload) noexcept {
    run.here = &here;
    const auto let_out = [&](const std::string& what) {
        if (here.gathering != nullptr) here.gathering->skip_rest(here);
        if (here.ended) return;
        answers_.reply_error(here.call, Error(ErrorCode::failed, fmt::format("{} on {} let an exception out{}",
                                                                             run.function->name, name_(), what)));
        here.ended = true;
    };
    try {
        try {
            Runner::call_out(run, [&] { run.entry(&here, payload.data(), payload.size()); });
        } catch (const abi::__forced_unwind&) {
            keep_thread_(&here);
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
    if (process_.is_past()) end_child_of(run.function->name.c_str());
}

// Leaves the frame in the mailbox; the frames after it wait as well.
Parked& Dispatcher::park(PeerState* from, const wire::Frame& frame, const code::Function* function) {
    std::optional<Parked>& parked = parked_of(from);
    if (!parked) parked.emplace();
    if (function != nullptr)
        parked->function = function->id;
    else if (wire::naming_of(frame.header) == wire::kByEither)
        parked->function = wire::copy_of<wire::Either>(frame.extra).shipped;
    else if (wire::naming_of(frame.header) != wire::kByHandle)
        parked->function = FunctionFinder::named_in(frame);
    parked->handle = frame.header.handle;
    return *parked;
}

Dispatcher::Taken Dispatcher::park_for_code(PeerState* from, const wire::Frame& frame, const code::Function* function) {
    Parked& parked = park(from, frame, function);
    if (parked.wait_for_code(Clock::now())) exchange_.ask(from, parked, frame.header.node);
    return Taken::parked;
}

// ---- packages and interfaces that a peer has sent, and asks this node to load

// A worker of the cache loads it and answers, so that no calls wait for that. One thread loads the packages of all peers, so it never waits
// for a peer to take its answer, which waits in the outbox, within the outbox's bounds.
void Dispatcher::on_load(const PeerState& from, const wire::Frame& frame) {
    const Digest digest = Digest::from(frame.extra.first<sizeof(Digest)>());
    const std::shared_ptr<PackageStore> package = cache_->package(digest);
    const wire::CallContext to = wire::context_of(frame);
    if (!package) {
        const Error* const refused = from.code.refusal_of(digest);
        return answers_.end_with_error(
            to, refused != nullptr
                    ? *refused
                    : Error(ErrorCode::invalid, fmt::format("{} has not received package {}", name_(), digest.hex())));
    }
    const auto loaded_later = [this, to, package](const Result<LoadReport>& loaded) {
        if (!loaded) {
            answers_.reply_error(to, loaded.error());
            return;
        }
        const std::string& interface = package->manifest().name;
        for (const std::string& replaced : loaded->replaced)
            log().info("{}: interface {} takes over {}; what arrived before keeps the old one", name_(), interface,
                       replaced);
        for (const std::string& kept : loaded->kept)
            log().info("{}: interface {} does not take over '{}', which is the node's own; preload it for that",
                       name_(), interface, kept);
        const std::string lines = wire::text_of({loaded->replaced, loaded->kept});
        const Bytes answer = rove::as_bytes(lines).first(std::min(lines.size(), wire::kPayloadBytesMax));
        const Hold hold(lead_.mutex());
        answers_.end_at_once(to, RanAs::image, answer);
    };
    const Status queued = cache_->load_later(package, loaded_later, to.node);
    if (!queued) answers_.end_with_error(to, queued.error());
}

}  // namespace rove
