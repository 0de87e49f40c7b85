// Functions that wait quietly. Their threads take replies only, so those of the node's own are lost to the mailboxes for as long: what
// such a function waits for may be a call that comes here. Each has another thread made in its place when it first waits so, and
// keeps it until it returns. There are always as many others, then, as a node begins with, and all that is said of these holds.
#include <pthread.h>

#include <algorithm>
#include <system_error>

#include "base/float_environment.hpp"
#include "node/core.hpp"
#include "node/log.hpp"

namespace rove {

bool QuietRuns::begin(const PeerState* from) {
    if (what_is_full(from, own_threads_) != nullptr) return false;
    const TimePoint now = Clock::now();
    for (Share* share : {&all_, &of_peer_[from]}) {
        ++share->threads;
        share->changed = now;
    }
    return true;
}

bool QuietRuns::end(const PeerState* from) {
    const bool held_others = what_is_full(from, 0) != nullptr;
    const TimePoint now = Clock::now();
    const auto of = of_peer_.find(from);
    for (Share* share : {&all_, &of->second}) {
        --share->threads;
        share->changed = now;
    }
    if (of->second.threads == 0) of_peer_.erase(of);
    return held_others;
}

const QuietRuns::Share* QuietRuns::what_is_full(const PeerState* from, unsigned beyond) const {
    const auto of = of_peer_.find(from);
    if (of == of_peer_.end()) return nullptr;  // the first of each peer has a place, whatever the others hold
    if (all_.threads >= kQuietRunsMax + beyond) return &all_;
    return of->second.threads >= kQuietRunsOfPeerMax + beyond ? &of->second : nullptr;
}

std::optional<TimePoint> QuietRuns::held_until(const code::Function& function, const PeerState* from) const {
    if (!holds(function, from)) return std::nullopt;
    return what_is_full(from, 0)->changed + kQuietHoldFor;
}

Error QuietRuns::too_many(const std::string& node, const code::Function& function) {
    return {
        ErrorCode::overloaded,
        fmt::format(
            "{} on {}: as many functions wait there as may that let nothing else run on their threads ({} of one peer, "
            "{} of all), and none of them has ended for {} s. Functions wait so where those that call one another have "
            "used up their thread's stack, and under rove::no_nesting; call less deeply or fewer at once, do without "
            "rove::no_nesting, or take what they send",
            function.name, node, kQuietRunsOfPeerMax, kQuietRunsMax, kQuietHoldFor.count())};
}

constinit thread_local OwnThread* NodeCore::own_thread_ = nullptr;

// Under the lock, which the new thread takes first of all.
Status NodeCore::add_own_thread(void (NodeCore::*serves)(OwnThread&)) {
    OwnThread& own = threads_.emplace_back(OwnThread{.of = this});
    try {
        own.thread = start_thread([this, &own, serves] {
            // A function may cancel the thread that it runs on. The thread would end later, in the node's code, with its lock taken.
            (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
            own_thread_ = &own;
            (this->*serves)(own);
        });
    } catch (const std::exception& error) {  // no thread, or no memory for one
        threads_.pop_back();
        return fail(ErrorCode::overloaded,
                    "{} can have no thread of its own any more ({}); is there a limit of processes?", name(),
                    error.what());
    }
    ++own_live_;
    return {};
}

void NodeCore::serve_own_thread(OwnThread& self) {
    Hold hold(*this);
    lead_.serve(hold.lock());
    self.ended = true;
    --own_live_;
}

// One thread of the node's own runs no function, so that there is one when all others are in some: it takes replies and parts, ends calls whose
// time is up, and leaves the calls in their mailboxes to the next thread that comes back.
void NodeCore::stand_by(OwnThread& self) {
    Hold hold(*this);
    lead_.stand_by(hold.lock());
    self.ended = true;
    --own_live_;
}

// Before a function waits quietly. False: there are too many that do, and no other thread is made. Threads that were made stay: the next
// function that waits so finds one there. With `--threads 1` no functions run side by side.
bool NodeCore::replace_thread(Run& run) {
    OwnThread* const self = own_thread_;
    if (run.replaced || self == nullptr || self->of != this || own_threads_ < 2) return true;
    if (run.function != nullptr) run.function->waits_quietly.store(true, std::memory_order_relaxed);
    if (self->quiet_runs == 0 && !quiet_runs_.begin(run.from)) return false;
    run.replaced = true;
    if (self->quiet_runs++ > 0) return true;
    self->quiet_for = run.from;
    if (!has_threads()) log().error("calls may wait for one that waits quietly");
    return true;
}

// Before a wait that holds up others beneath it lets nothing more run on top of it. Another thread is made for what comes: all that the node
// has may be in functions. False: as many waits do so as may, and this one goes on as before.
bool NodeCore::stops_nesting() {
    if (unnested_waits_ >= kUnnestedWaitsMax || !has_threads(1)) return false;
    ++unnested_waits_;
    return true;
}

// Threads that it makes stay until the node ends.
bool NodeCore::has_threads(unsigned more) {
    const std::size_t wanted = own_threads_ + quiet_runs_.threads() + gatherings_ + unnested_waits_ + more;
    while (!lead_.is_stopping() && threads_.size() - 1 - kept_threads_ < wanted) {  // one stands by
        if (const Status made = add_own_thread(&NodeCore::serve_own_thread); !made) {
            log().error("{}", made.error().message());
            return false;
        }
    }
    return true;
}

// A run that reads its payload has a thread besides, and takes none. (Where what it reads has code of its own that waits for a call, it is
// not among the long runs either meanwhile.)
unsigned NodeCore::places_taken() const {
    const unsigned leading = running_ != nullptr && running_->gathering != nullptr ? 1 : 0;
    return long_runs_ - std::min(long_runs_, gatherings_ - leading);
}

void NodeCore::take_thread_back(Run& run) {
    run.replaced = false;
    if (--own_thread_->quiet_runs > 0) return;
    if (quiet_runs_.end(own_thread_->quiet_for)) lead_.wake();
}

}  // namespace rove
