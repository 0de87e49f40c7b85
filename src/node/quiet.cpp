// Functions that wait quietly. Their threads take replies only, so those of the node's own are lost to the mailboxes for as long: what
// such a function waits for may be a call that comes here. Each has another thread made in its place when it first waits so, and
// keeps it until it returns. There are always as many others, then, as a node begins with, and all that is said of these holds.
#include <system_error>

#include "node/core.hpp"
#include "node/log.hpp"

namespace rove {

void QuietRuns::begin(const fabric::Link* link) {
    const TimePoint now = Clock::now();
    for (Share* share : {&all_, &of_link_[link]}) {
        ++share->threads;
        share->changed = now;
    }
}

bool QuietRuns::end(const fabric::Link* link) {
    const bool held_others = what_is_full(link) != nullptr;
    const TimePoint now = Clock::now();
    const auto of = of_link_.find(link);
    for (Share* share : {&all_, &of->second}) {
        --share->threads;
        share->changed = now;
    }
    if (of->second.threads == 0) of_link_.erase(of);
    return held_others;
}

const QuietRuns::Share* QuietRuns::what_is_full(const fabric::Link* link) const {
    if (is_full()) return &all_;
    const auto of = link != nullptr ? of_link_.find(link) : of_link_.end();
    return of != of_link_.end() && of->second.threads >= kQuietRunsOfPeerMax ? &of->second : nullptr;
}

bool QuietRuns::gives_up(const code::Function& function, const fabric::Link* link) const {
    return holds(function, link) && Clock::now() - what_is_full(link)->changed >= kQuietHoldFor;
}

std::optional<TimePoint> QuietRuns::due() const {
    const TimePoint now = Clock::now();
    std::optional<TimePoint> first;
    const auto look_at = [&](const Share& share, unsigned max) {
        const TimePoint until = share.changed + kQuietHoldFor;
        if (share.threads >= max && now < until && (!first || until < *first)) first = until;
    };
    look_at(all_, kQuietRunsMax);
    for (const auto& [link, share] : of_link_) look_at(share, kQuietRunsOfPeerMax);
    return first;
}

thread_local OwnThread* NodeCore::own_thread_ = nullptr;

// Under the lock, which the new thread takes first of all.
void NodeCore::add_own_thread(void (NodeCore::*serves)(OwnThread&)) {
    OwnThread& own = threads_.emplace_back(OwnThread{.of = this});
    ++own_live_;
    own.thread = std::thread([this, &own, serves] {
        own_thread_ = &own;
        (this->*serves)(own);
    });
}

// Threads that were made stay: the next function that waits so finds one there. With `--threads 1` no functions run side by side.
void NodeCore::replace_thread(Run& run) {
    OwnThread* const self = own_thread_;
    if (run.replaced || self == nullptr || self->of != this || own_threads_ < 2) return;
    if (run.function != nullptr)
        run.function->waits_quietly.store(true, std::memory_order_relaxed);
    else if (quiet_runs_.is_full())
        return;  // a callback of this program's own: nobody can hold it back, and it has no thread beyond the bound
    run.replaced = true;
    if (self->quiet_runs++ > 0) return;
    quiet_runs_.begin(run.link);
    const std::size_t functions_on = threads_.size() - 1;  // one stands by
    if (stopping_ || functions_on >= std::size_t{own_threads_} + quiet_runs_.threads()) return;
    try {
        add_own_thread(&NodeCore::serve_own_thread);
    } catch (const std::system_error& error) {
        threads_.pop_back();
        --own_live_;
        log().error("{}: no thread can be made in place of one that waits quietly ({}); calls may wait for it", name(),
                    error.what());
    }
}

void NodeCore::take_thread_back(Run& run) {
    run.replaced = false;
    if (--own_thread_->quiet_runs > 0) return;
    if (quiet_runs_.end(run.link)) wake_leader();
}

}  // namespace rove
