#include "node/gathering.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "node/here.hpp"
#include "node/names.hpp"
#include "node/running.hpp"

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
constexpr auto kSleepMax = std::chrono::milliseconds(1);
// How long the user's function may keep what follows it waiting where another thread leads: two looks of whoever watches a leader.
constexpr auto kKeepsMailboxFor = std::chrono::milliseconds(1);
// How long it waits for the next part when its node ends.
constexpr auto kPatienceAtEnd = std::chrono::milliseconds(100);
// How long streams wait for a leader that reads.
constexpr auto kProgressEvery = std::chrono::microseconds(200);

}  // namespace

Gathering::Gathering(NodeCore& core, PeerState& from, const wire::Part& first, std::uint32_t handle)
    : core_(core),
      peer_(from.shared_from_this()),
      link_(from.link),
      number_(first.number),
      handle_(handle),
      total_bytes_(first.total_bytes) {
    from.staged.begin_elsewhere(number_, total_bytes_, begun_);  // first: there may be no memory
    core_.staged_bytes_ += total_bytes_;
    core_.own_threads_.begin_gathering();
    from.gathering = this;
}

std::uint64_t Gathering::done_on(NodeCore& core) {
    const NodeCore::Hold hold(core);
    return core.gathered_;
}

unsigned Gathering::running_on(NodeCore& core) {
    const NodeCore::Hold hold(core);
    return core.own_threads_.gatherings();
}

// What may not is refused, or waits, where payloads are put together.
bool Gathering::may_begin(const NodeCore& core, const PeerState& from, const wire::Part& first,
                          const Lead::Turn& turn) {
    const bool thread = turn.baton.own && turn.runs_functions() && core.lead_.has_followers() &&
                        core.running_ == nullptr && NodeCore::in_user_code_.core == nullptr &&
                        core.own_threads_.gatherings() < core.options_.threads / 2 &&
                        core.places_taken() < core.options_.threads && !core.lead_.is_stopping();
    if (!thread || first.offset != 0 || first.total_bytes == 0 || first.total_bytes > wire::kMessageBytesMax)
        return false;
    return from.linked() && !from.link->by_messages() && from.gathering == nullptr && !from.parked &&
           !from.staged.contains(first.number) && from.staged.may_begin(first.total_bytes) &&
           core.staged_bytes_ + first.total_bytes <= kAllStagedBytesMax;
}

bool Gathering::runs_part(NodeCore& core, PeerState& from, const wire::Frame& part, Lead::Turn& turn) {
    const std::uint32_t named = part.header.handle;  // a handle, and 1; 0: none
    wire::Part first;
    std::memcpy(&first, part.extra.data(), sizeof first);
    if (named == 0 || from.aliases.find(named - 1) != nullptr || !may_begin(core, from, first, turn)) return false;
    code::Function* const function = core.cache_->by_handle(named - 1);
    if (function == nullptr || !function->gathers.load(std::memory_order_relaxed) ||
        core.must_wait_for_thread(*function, &from))
        return false;
    // It takes no place among the functions that run long while it reads, for a call that needs one may lie before its next part.
    if (!core.own_threads_.has_enough(1)) return false;
    const code::EntryPoint entry = core.cache_->enter_leading(*function);
    if (entry == nullptr) return false;
    Gathering gathering(core, from, first, named - 1);
    Run run{.function = function,
            .entry = entry,
            .ran = function->ran.load(std::memory_order_relaxed),
            .from = &from,
            .watch = &turn.watch,
            .on_own_thread = turn.baton.own};
    run.gathering = &gathering;
    gathering.run_ = &run;
    const code::Pace::Short was_short = function->pace.how_short();
    const bool waited_quietly = function->waits_quietly.load(std::memory_order_relaxed);
    core.begin_run(run);
    const NodeCore::InUserCode outer = std::exchange(NodeCore::in_user_code_, {&core, turn.baton.term, &run});
    turn.lock.unlock();
    // It cannot end a call that has not come.
    rove_here here{.core = &core, .function = function, .call = {}, .ran = run.ran, .ended = true};
    here.gathering = &gathering;
    core.run_here(run, here, {});
    gathering.skip_rest(here);
    turn.lock.lock();
    NodeCore::in_user_code_ = outer;
    core.end_run(run);
    if (gathering.peer_->gathering == &gathering) {
        gathering.give_mailbox();
        core.lead_.wake();
    }
    if (gathering.state_ == State::over) {  // it never ran
        function->pace.set_short(was_short);
        function->waits_quietly.store(waited_quietly, std::memory_order_relaxed);
    }
    if (gathering.state_ == State::called && !here.ended && here.answer_lost)
        core.end_with_error(here.call, no_memory());
    else if (gathering.state_ == State::called && !here.ended && (here.call.flags & wire::kNoReply) == 0)
        (void)core.end_with_reply(here.call, run.ran, {}, nullptr);
    return true;
}

// ---- the mailbox's owner

bool Gathering::is_own(const wire::Frame& frame) const {
    std::uint64_t number = 0;
    if (frame.header.kind == Kind::part && frame.extra.size() == sizeof(wire::Part))
        std::memcpy(&number, frame.extra.data() + offsetof(wire::Part, number), sizeof number);
    else if (frame.header.kind == Kind::call && (frame.header.flags & wire::kParts) != 0 &&
             frame.payload.size() == sizeof(wire::Staged))
        std::memcpy(&number, frame.payload.data() + offsetof(wire::Staged, number), sizeof number);
    else
        return false;
    return number == number_;
}

bool Gathering::keeps_mailbox() {
    if (state_ != State::called) return has_mailbox_;
    if (Clock::now() - run_->begun < kKeepsMailboxFor) return true;
    run_->function->pace.seen_long();  // as the watch sees it where the leader runs one
    give_mailbox();
    return false;
}

void Gathering::give_mailbox() {
    if (peer_->gathering == this) peer_->gathering = nullptr;
    has_mailbox_ = false;
    if (!peer_->lost) return;
    core_.housekeeping_due_ = {};  // which has waited for this
    core_.housekeeping_in_ = 1;
}

bool Gathering::takes(const wire::Frame& frame) {
    if (!is_own(frame)) return false;
    has_mailbox_ = true;
    return true;
}

Gathering::Next Gathering::next(rove_here& here) {
    // Without the lock, which may be another thread's for ever where this is the child of a fork.
    if (state_ == State::called) return Next::call;
    if (state_ == State::over || core_.is_inherited()) return Next::over;
    for (;;) {
        core_.lead_.mutex().let_in();
        {
            NodeCore::Hold hold(core_);
            const std::optional<Next> found = look(here);
            mind_the_lead(found.has_value());
            if (found) {
                waits_since_.reset();
                return *found;
            }
            if (!waits_since_) waits_since_ = Clock::now();
            watch_.signals.clear();
            if (has_mailbox_) {
                link_->await(watch_.signals, true);
                watch_.signals.resize(1);  // the calls'
            }
        }
        pause();
    }
}

std::optional<Gathering::Next> Gathering::look(rove_here& here) {
    if (peer_->gathering != this) return end(State::over);  // the peer is gone
    if (std::exchange(part_in_use_, false)) link_->release(Traffic::calls);
    // This node begins nothing any more, and this has not begun yet.
    if (core_.ending_ || (core_.lead_.is_stopping() && waits_since_ && Clock::now() - *waits_since_ > kPatienceAtEnd))
        return end(State::over);
    if (!has_mailbox_) return std::nullopt;
    wire::Frame frame;
    if (link_->next(Traffic::calls, frame)) {
        if (is_own(frame)) return take(frame, here);
        has_mailbox_ = false;
        core_.lead_.wake();
        return std::nullopt;
    }
    if (link_->broken() != nullptr || peer_->lost) return end(State::over);
    return std::nullopt;
}

Gathering::Next Gathering::take(const wire::Frame& frame, rove_here& here) {
    if (const auto wrong = core_.checked(*peer_, frame, Traffic::calls)) {
        link_->break_with(*wrong);
        return end(State::over);
    }
    return frame.header.kind == Kind::part ? take_part(frame) : take_call(frame, here);
}

Gathering::Next Gathering::take_part(const wire::Frame& frame) {
    wire::Part part;
    std::memcpy(&part, frame.extra.data(), sizeof part);
    if (part.total_bytes == 0) {  // taken back
        link_->release(Traffic::calls);
        return end(State::over);
    }
    if (part.offset != arrived_ || part.total_bytes != total_bytes_ || frame.payload.size() > total_bytes_ - arrived_)
        return refuse("sent a part of no payload that has begun, or out of its order");
    arrived_ += frame.payload.size();
    peer_->staged.came_elsewhere(frame.payload.size());
    part_ = frame.payload;
    part_in_use_ = true;
    return Next::part;
}

// By the handle that the first part gave: the sender has said twice whom it means.
Gathering::Next Gathering::take_call(const wire::Frame& frame, rove_here& here) {
    wire::Staged which;
    std::memcpy(&which, frame.payload.data(), sizeof which);
    if (which.total_bytes != total_bytes_ || arrived_ != total_bytes_) return refuse("sent a call without its parts");
    if (wire::naming_of(frame.header) != wire::kByHandle || frame.header.handle != handle_)
        return refuse("sent a call of another function than its first part named");
    if (frame.header.node != peer_->id) return refuse("sent on a call whose payload came in parts");
    here.call = frame.header;
    here.call.node = peer_->back;
    here.ended = false;
    link_->release(Traffic::calls);
    ++core_.gathered_;
    return end(State::called);
}

Gathering::Next Gathering::refuse(std::string_view what) {
    link_->break_with(Error(ErrorCode::invalid, fmt::format("{} {}", who(*peer_), what)));
    return end(State::over);
}

// From here on the run is one like any other.
Gathering::Next Gathering::end(State state) {
    state_ = state;
    if (peer_->gathering == this)
        core_.staged_bytes_ -= peer_->staged.forget(number_);  // of a meeting that has ended, clear() has given it back
    core_.own_threads_.end_gathering();
    const bool keeps =
        state == State::called && run_->handed_over && peer_->gathering == this && !run_->function->pace.is_long();
    if (!keeps) give_mailbox();
    part_in_use_ = false;
    part_ = {};
    link_.reset();
    run_->gathering = nullptr;
    run_->begun = state == State::called ? Clock::now() : TimePoint{};
    run_->waited = {};
    if (!leads()) core_.lead_.wake();
    return state == State::called ? Next::call : Next::over;
}

// ---- the lead

bool Gathering::leads() const {
    return core_.runs_as_leader() && core_.running_ == run_;
}

// A run that reads leads on while nobody else is there to be served, and whoever keeps watch does not take it for a long function.
void Gathering::mind_the_lead(bool arrived) {
    if (!leads()) return;
    const TimePoint now = Clock::now();
    const bool stalls = !arrived && waits_since_ && now - *waits_since_ > kWaitsLeadingFor;
    if (state_ == State::reading && (!has_mailbox_ || stalls || now - begun_ > kKeepsLeadFor || others_wait(now))) {
        run_->begun = now;
        run_->waited = {};
        core_.set_aside(*run_);
        core_.lead_.hand_over_to_anybody();
    } else if (arrived) {
        core_.lead_.begin_run();
    }
}

bool Gathering::others_wait(TimePoint now) const {
    if (core_.lead_.was_woken() || !core_.ready_.empty() || !core_.room_waits_.empty() || !core_.local_.empty())
        return true;
    if (const auto first = core_.calls_.first_deadline(); first && *first <= now) return true;
    for (const auto& peer : core_.peers_) {
        const bool waits = peer.get() != peer_.get()
                               ? peer->has_work()
                               : peer->link && (peer->link->pending(false) || peer->lost || peer->has_frames_waiting());
        if (waits) return true;
    }
    if (!core_.fabric_->needs_progress() || now - core_.progressed_at_ < kProgressEvery) return false;
    core_.progressed_at_ = now;
    return core_.fabric_->progress() > 0;
}

// ---- waiting

// Without the lock. It watches the mailbox's next frame, or, while the leader has the mailbox, for that to change.
void Gathering::pause() const {
    static constinit const std::atomic<bool> nothing_else{false};
    const auto waited = Clock::now() - *waits_since_;
    if (waited > kYieldFor)
        std::this_thread::sleep_for(std::min<TimePoint::duration>(waited / 16, kSleepMax));
    else if (waited > kSpinFor)
        sched_yield();
    else if (watch_.signals.empty())
        (void)spin(watch_, has_mailbox_, kSpinTurns);
    else
        (void)spin(watch_, nothing_else, kSpinTurns);
}

}  // namespace rove
