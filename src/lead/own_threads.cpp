#include "lead/own_threads.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <exception>
#include <new>

#include "base/float_environment.hpp"
#include "base/log.hpp"
#include "lead/run.hpp"

namespace rove {

constinit thread_local OwnThreads::One* OwnThreads::mine_ = nullptr;

namespace {

void serve(void* lead, Lead::Lock& lock, OwnThreads::One& /*self*/) REQUIRES(lock_of<EngineLock>) {
    static_cast<Lead*>(lead)->serve(lock);
}
void stand_by(void* lead, Lead::Lock& lock, OwnThreads::One& /*self*/) REQUIRES(lock_of<EngineLock>) {
    static_cast<Lead*>(lead)->stand_by(lock);
}

}  // namespace

Status OwnThreads::start(unsigned count) {
    count_ = count;
    for (unsigned i = 0; i < count_; ++i) ROVE_CHECK(add(&serve, &lead_));
    if (count_ > 1) ROVE_CHECK(add(&stand_by, &lead_));
    return {};
}

// The new thread takes the lock first of all.
Status OwnThreads::add(void (*serves)(void* argument, Lock& lock, One& self), void* argument) {
    const std::size_t before = threads_.size();
    try {
        One& own = threads_.emplace_back(this);
        own.thread = start_thread([this, &own, serves, argument] {
            // A function may cancel the thread that it runs on. The thread would end later, in the node's code, while it holds the node's
            // lock.
            (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
            mine_ = &own;
            Hold hold(lead_.mutex());
            serves(argument, hold.lock(), own);
            own.ended = true;
            --live_;
        });
    } catch (const std::exception& error) {  // no thread, or no memory for one
        if (threads_.size() > before) threads_.pop_back();
        return no_thread(error.what());
    }
    ++live_;
    return {};
}

// If there is no memory for this message either, the error is the one that needs none.
tl::unexpected<Error> OwnThreads::no_thread(std::string_view why) const try {
    return fail(ErrorCode::overloaded,
                "{} can have no thread of its own any more ({}); is there a limit of processes or of memory?", name_(),
                why);
} catch (const std::bad_alloc&) {
    return tl::unexpected<Error>(no_memory());
}

bool OwnThreads::make_enough(unsigned more) {
    const std::size_t wanted = count_ + quiet_runs_.threads() + gatherings_ + unnested_waits_ + more;
    while (!lead_.is_stopping() && threads_.size() - 1 - kept_ < wanted) {  // one is the standby thread
        if (const Status made = add(&serve, &lead_); !made) {
            log().error("{}", made.error().message());
            return false;
        }
    }
    return true;
}

bool OwnThreads::replace(Run& run) {
    if (run.replaced || !is_mine() || count_ < 2) return true;
    if (run.function != nullptr) run.function->waits_quietly.store(true, std::memory_order_relaxed);
    if (mine_->quiet_runs == 0 && !quiet_runs_.begin(run.from)) return false;
    run.replaced = true;
    if (mine_->quiet_runs++ > 0) return true;
    mine_->quiet_for = run.from;
    if (!make_enough()) log().error("calls may wait for one that waits quietly");
    return true;
}

void OwnThreads::take_back(Run& run) {
    run.replaced = false;
    if (--mine_->quiet_runs > 0) return;
    if (quiet_runs_.end(mine_->quiet_for)) lead_.wake();
}

bool OwnThreads::stop_nesting() {
    if (unnested_waits_ >= kUnnestedWaitsMax || !make_enough(1)) return false;
    ++unnested_waits_;
    return true;
}

Status OwnThreads::keep_mine() {
    --live_;
    if (std::exchange(mine_->quiet_runs, 0) > 0 && quiet_runs_.end(mine_->quiet_for)) lead_.wake();
    if (kept_ >= kKeptThreadsMax)
        return fail(ErrorCode::overloaded, "{} threads are kept, as many as may have another one in their place",
                    kept_);
    ROVE_CHECK(add(&serve, &lead_));
    ++kept_;
    return {};
}

bool OwnThreads::part_with_all(std::vector<std::thread>& ended) {
    bool leaves_some = false;
    for (One& each : threads_) {
        if (each.ended) {
            ended.push_back(std::move(each.thread));
            continue;
        }
        each.is_left = true;
        if (!each.is_at_rest.load(std::memory_order_acquire)) leaves_some = true;
        each.thread.detach();
    }
    return leaves_some;
}

}  // namespace rove
