#include "engine/gathering.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "engine/here.hpp"
#include "peer/names.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

// How long a run that reads keeps the lead while nobody else is there to be served, and for how long of that it waits for one part:
// housekeeping waits for it, as it does for a leader that sleeps. The largest payload takes 5 to 15 ms where both ends have a core.
constexpr auto kKeepsLeadFor = std::chrono::milliseconds(100);
constexpr auto kWaitsLeadingFor = std::chrono::milliseconds(20);
// How a run waits for the next part: it spins, then lets others have the core between looks, then sleeps.
constexpr unsigned kSpinTurns = 100;  // 5 us between two looks that need the lock
constexpr auto kSpinFor = std::chrono::microseconds(50);
constexpr auto kYieldFor = std::chrono::microseconds(500);
constexpr auto kNapMax = std::chrono::milliseconds(1);
// For how long the user's function may hold up later frames while another thread leads: two looks of the thread that keeps watch.
constexpr auto kKeepsMailboxFor = std::chrono::milliseconds(1);
// How long it waits for the next part when its node ends.
constexpr auto kPatienceAtEnd = std::chrono::milliseconds(100);

}  // namespace

Gathering::Gathering(Gatherings& all, PeerState& from, const wire::Part& first, std::uint32_t handle)
    : all_(all),
      peer_(from.shared_from_this()),
      link_(from.link()),
      number_(first.number),
      handle_(handle),
      total_bytes_(first.total_bytes),
      parts_(first.total_bytes) {
    awaited_.signals.reserve(fabric::kTrafficKinds);
    all_.beside_.payload_parts.begin_elsewhere(from, first, begun_);  // first: there may be no memory
    all_.beside_.own_threads.begin_gathering();
    from.calls.begin_reading(*this);
}

std::uint64_t Gatherings::done() const {
    const Hold hold(beside_.lead.mutex());
    return done_;
}

unsigned Gatherings::running() const {
    const Hold hold(beside_.lead.mutex());
    return beside_.own_threads.gatherings();
}

// Otherwise PayloadParts reassembles the payload, and refuses it or lets it wait if need be.
bool Gatherings::may_begin(const PeerState& from, const wire::Part& first, const Lead::Turn& turn) const {
    const unsigned threads = beside_.options.threads;
    const bool thread = turn.baton.own && turn.runs_functions() && beside_.lead.has_followers() &&
                        beside_.runner.leading() == nullptr && !ThreadRuns::is_in_any() &&
                        beside_.own_threads.gatherings() < threads / 2 && beside_.runner.places_taken() < threads &&
                        !beside_.lead.is_stopping();
    if (!thread || first.offset != 0 || first.total_bytes == 0) return false;
    return from.linked() && !from.link()->by_messages() && from.calls.reader() == nullptr && !from.calls.parked &&
           beside_.payload_parts.may_begin_elsewhere(from, first);
}

bool Gatherings::runs_part(PeerState& from, const wire::Frame& part, Lead::Turn& turn) {
    const std::optional<std::uint32_t> named = wire::function_in_part(part.header);
    const auto first = wire::copy_of<wire::Part>(part.extra);
    if (!wire::wrong_part(first, part.payload.size(), /*among_calls=*/true).empty())
        return false;  // PayloadParts says what
    if (!named || from.code.aliases.find(*named) != nullptr || !may_begin(from, first, turn)) return false;
    code::Function* const function = beside_.cache->by_handle(*named);
    if (function == nullptr || !function->gathers.load(std::memory_order_relaxed) ||
        beside_.runner.must_wait_for_thread(*function, &from))
        return false;
    // While it reads it takes no place among the long functions, because a call that needs a place may precede its next part.
    if (!beside_.own_threads.make_enough(1)) return false;
    const code::EntryPoint entry = beside_.runner.code().enter(*function);
    if (entry == nullptr) return false;
    Gathering gathering(*this, from, first, *named);
    Run run{.function = function, .entry = entry, .ran = function->ran.load(std::memory_order_relaxed), .from = &from};
    run.gathering = &gathering;
    gathering.run_ = &run;
    const code::Pace::Short was_short = function->pace.how_short();
    const bool waited_quietly = function->waits_quietly.load(std::memory_order_relaxed);
    // It cannot end a call that has not arrived.
    rove_here here{.engine = &beside_.engine, .function = function, .call = {}, .ran = run.ran, .ended = true};
    here.gathering = &gathering;
    beside_.runner.begin(run, turn);
    beside_.runner.outside(run, turn, [&] {
        beside_.run(run, here);
        gathering.skip_rest(here);
    });
    if (gathering.peer_->calls.are_read_by(gathering)) {
        gathering.give_mailbox();
        beside_.lead.wake();
    }
    if (gathering.state_ == Gathering::State::over) {  // it never ran
        function->pace.set_short(was_short);
        function->waits_quietly.store(waited_quietly, std::memory_order_relaxed);
    }
    if (gathering.state_ == Gathering::State::called && !here.ended && here.answer_lost)
        beside_.answers.end_with_error(here.call, no_memory());
    else if (gathering.state_ == Gathering::State::called && !here.ended && here.call.wants_reply)
        beside_.answers.end_at_once(here.call, run.ran);
    return true;
}

// ---- the mailbox's owner

bool Gathering::is_own(const wire::Frame& frame) const {
    if (frame.header.kind == Kind::part && frame.extra.size() == sizeof(wire::Part))
        return wire::copy_of<wire::Part>(frame.extra).number == number_;
    return frame.header.kind == Kind::call && (frame.header.flags & wire::kParts) != 0 &&
           frame.payload.size() == sizeof(wire::Staged) && wire::copy_of<wire::Staged>(frame.payload).number == number_;
}

bool Gathering::has_run_long() const {
    return state_ == State::called && Clock::now() - run_->begun >= kKeepsMailboxFor;
}

bool Gathering::keeps_mailbox() const {
    return state_ == State::called ? !has_run_long() : has_mailbox_.load();
}

void Gathering::give_back_if_long() {
    if (!has_run_long()) return;
    run_->function->pace.seen_long();  // as the watch sees it where the leader runs one
    give_mailbox();
}

void Gathering::give_mailbox() {
    peer_->calls.end_reading(*this);
    has_mailbox_ = false;
    if (!peer_->lost()) return;
    all_.beside_.housekeeping.hurry();  // which has waited for this
}

bool Gathering::takes(const wire::Frame& frame) {
    if (!is_own(frame)) return false;
    has_mailbox_ = true;
    return true;
}

// Both callers, code that travels and Runner::outside, treat an exception as the end of the call.
Gathering::Next Gathering::next(rove_here& here) noexcept {
    // Without the lock, which may be another thread's for ever where this is the child of a fork.
    if (state_ == State::called) return Next::call;
    if (state_ == State::over || process_.is_past()) return Next::over;
    try {
        return wait_for_next(here);
    } catch (const std::bad_alloc&) {
        const Hold hold(all_.beside_.lead.mutex());
        if (state_ != State::reading) return state_ == State::called ? Next::call : Next::over;
        link_->break_with(no_memory());
        return end(State::over);
    }
}

Gathering::Next Gathering::wait_for_next(rove_here& here) {
    for (;;) {
        all_.beside_.lead.mutex().let_in();
        {
            const Hold hold(all_.beside_.lead.mutex());
            const std::optional<Next> found = look(here);
            mind_the_lead(found.has_value());
            if (found) {
                waits_since_.reset();
                return *found;
            }
            if (!waits_since_) waits_since_ = Clock::now();
            awaited_.signals.clear();
            if (has_mailbox_) {
                link_->await(awaited_.signals, true);
                awaited_.signals.resize(1);  // the calls'
            }
        }
        pause();
    }
}

std::optional<Gathering::Next> Gathering::look(rove_here& here) {
    if (!peer_->calls.are_read_by(*this)) return end(State::over);  // the peer is gone
    if (std::exchange(part_in_use_, false)) link_->release(Traffic::calls);
    // This node begins nothing any more, and this has not begun yet.
    if (all_.beside_.runner.is_ending() ||
        (all_.beside_.lead.is_stopping() && waits_since_ && Clock::now() - *waits_since_ > kPatienceAtEnd))
        return end(State::over);
    if (!has_mailbox_) return std::nullopt;
    wire::Frame frame;
    if (link_->next(Traffic::calls, frame)) {
        if (is_own(frame)) return take(frame, here);
        has_mailbox_ = false;
        all_.beside_.lead.wake();
        return std::nullopt;
    }
    if (link_->broken() != nullptr || peer_->lost()) return end(State::over);
    return std::nullopt;
}

Gathering::Next Gathering::take(const wire::Frame& frame, rove_here& here) {
    if (const auto wrong = all_.beside_.checks.wrong_with(*peer_, frame, Traffic::calls)) {
        link_->break_with(*wrong);
        return end(State::over);
    }
    return frame.header.kind == Kind::part ? take_part(frame) : take_call(frame, here);
}

Gathering::Next Gathering::take_part(const wire::Frame& frame) {
    const auto part = wire::copy_of<wire::Part>(frame.extra);
    if (part.total_bytes == 0) {  // taken back
        link_->release(Traffic::calls);
        return end(State::over);
    }
    if (!parts_.take(part.offset, part.total_bytes, frame.payload.size()))
        return refuse("sent a part of no payload that has begun, or out of its order");
    peer_->calls.staged.came_elsewhere(frame.payload.size());
    part_ = frame.payload;
    part_in_use_ = true;
    return Next::part;
}

// The call must have the handle that its first part named.
Gathering::Next Gathering::take_call(const wire::Frame& frame, rove_here& here) {
    const auto which = wire::copy_of<wire::Staged>(frame.payload);
    if (which.total_bytes != parts_.total() || !parts_.is_whole()) return refuse("sent a call without its parts");
    if (wire::naming_of(frame.header) != wire::kByHandle || frame.header.handle != handle_)
        return refuse("sent a call of another function than its first part named");
    if (frame.header.node != peer_->id()) return refuse("sent on a call whose payload came in parts");
    here.call = wire::context_of(frame);
    here.call.node = peer_->back();
    here.ended = false;
    link_->release(Traffic::calls);
    ++all_.done_;
    return end(State::called);
}

Gathering::Next Gathering::refuse(std::string_view what) {
    link_->break_with(Error(ErrorCode::invalid, fmt::format("{} {}", who(*peer_), what)));
    return end(State::over);
}

// From here on the run is one like any other.
Gathering::Next Gathering::end(State state) {
    state_ = state;
    if (peer_->calls.are_read_by(*this))
        all_.beside_.payload_parts.forget(*peer_, number_);  // of a meeting that has ended, clear() has given it back
    all_.beside_.own_threads.end_gathering();
    const bool keeps = state == State::called && run_->handed_over && peer_->calls.are_read_by(*this) &&
                       !run_->function->pace.is_long();
    if (!keeps) give_mailbox();
    part_in_use_ = false;
    part_ = {};
    link_.reset();
    run_->gathering = nullptr;
    run_->begun = state == State::called ? Clock::now() : TimePoint{};
    run_->waited = {};
    if (!leads()) all_.beside_.lead.wake();
    return state == State::called ? Next::call : Next::over;
}

// ---- the lead

bool Gathering::leads() const {
    return all_.beside_.runner.runs_as_leader() && all_.beside_.runner.leading() == run_;
}

// A run that reads keeps the lead while no other frames arrive, and the thread on watch does not count it as a long function.
void Gathering::mind_the_lead(bool arrived) {
    if (!leads()) return;
    const TimePoint now = Clock::now();
    const bool stalls = !arrived && waits_since_ && now - *waits_since_ > kWaitsLeadingFor;
    if (state_ == State::reading &&
        (!has_mailbox_ || stalls || now - begun_ > kKeepsLeadFor || all_.beside_.others_wait(*peer_, now))) {
        run_->waited = {};
        all_.beside_.runner.set_aside(now);
        all_.beside_.lead.hand_over_to_anybody();
    } else if (arrived) {
        all_.beside_.lead.begin_run();
    }
}

// ---- waiting

// Without the lock. Watches for the mailbox's next frame or, while the leader has the mailbox, for its return.
void Gathering::pause() const {
    static constinit const std::atomic<bool> nothing_else{false};
    const auto waited = Clock::now() - *waits_since_;
    if (waited > kYieldFor)
        std::this_thread::sleep_for(std::min<TimePoint::duration>(waited / 16, kNapMax));
    else if (waited > kSpinFor)
        sched_yield();
    else if (awaited_.signals.empty())
        (void)spin(awaited_, has_mailbox_, kSpinTurns);
    else
        (void)spin(awaited_, nothing_else, kSpinTurns);
}

}  // namespace rove
