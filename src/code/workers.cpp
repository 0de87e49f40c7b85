#include "code/workers.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/float_environment.hpp"
#include "code/own_thread.hpp"

namespace rove::code {

namespace {

std::atomic<int> abandoned_workers{0};

// The process's end destroys LLVM's static objects, which an abandoned worker may still use. This handler runs before that.
void end_without_destructors(int status, void* /*argument*/) {
    if (abandoned_workers.load() == 0) return;
    (void)std::fflush(nullptr);
    _exit(status);
}

void abandon_worker() {
    if (abandoned_workers++ == 0) (void)on_exit(&end_without_destructors, nullptr);
}

}  // namespace

void Workers::stop(TimePoint until) {
    lock_.stop();
    while (!have_ended() && Clock::now() < until) lock_.wait_until(until);
    for (Worker& each : workers_) {
        if (each.ended || each.abandoned) continue;
        // The thread shares ownership of what it uses, so no thread need wait for its end.
        each.abandoned = true;
        abandon_worker();
        each.thread.detach();
    }
    lock_.wait_for_callbacks();
    for (Worker& each : workers_)
        if (!each.abandoned) each.thread.join();
    workers_.remove_if([](const Worker& each) REQUIRES(lock_of<CodeCache>) { return !each.abandoned; });
}

Status Workers::start(Duty duty, std::function<void()> first) {
    if (on_duty(duty) != nullptr || lock_.has_stopped()) return {};
    reap();
    const std::size_t before = workers_.size();
    try {
        Worker& worker = workers_.emplace_back(Worker{.duty = duty, .thread = {}});
        worker.thread = start_thread([all = all_(), this, self = &worker, first = std::move(first)]() mutable {
            if (first) first();
            if (work(*self)) return;
            all.reset();  // destroys compiled code: LLVM is used until here
            --abandoned_workers;
        });
    } catch (const std::exception& error) {  // no thread, or no memory for one
        if (workers_.size() > before) workers_.pop_back();
        return fail(ErrorCode::overloaded,
                    "{} can {} no package: its machine has no thread for that now ({}); call it later, or allow that "
                    "node more threads",
                    options_.node, duty == Duty::images ? "load" : "compile", error.what());
    }
    on_duty(duty) = &workers_.back();
    return {};
}

Status Workers::hand_over(Duty duty, const PackageCode& package) {
    Worker* const self = std::exchange(on_duty(duty), nullptr);
    Status started = lock_.or_error(package, [&]() REQUIRES(lock_of<CodeCache>) { return start(duty); });
    if (!started) on_duty(duty) = self;
    return started;
}

// Called under the lock, so it joins only threads that the kernel has ended: what a package registered for a thread's end may take long.
void Workers::reap() {
    for (auto each = workers_.begin(); each != workers_.end();) {
        if (!each->ended || each->abandoned || is_alive(each->kernel_id)) {
            ++each;
            continue;
        }
        each->thread.join();
        each = workers_.erase(each);
    }
}

// Does the duty's jobs until another worker takes it over or the cache stops. False: it was abandoned, and no thread joins it.
bool Workers::work(Worker& self) {
    // A batch thread, so that waking it does not preempt the waking thread, which has other calls to run.
    const sched_param none{};
    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
    const LockOf lock(lock_.mutex());
    self.kernel_id = gettid();
    while (!lock_.has_stopped() && on_duty(self.duty) == &self)
        if (!do_next_(self.duty)) lock_.wait();
    self.ended = true;
    lock_.notify_all();
    return !self.abandoned;
}

void Workers::end_work(const Digest& package) {
    --working_;
    if (lock_.has_stopped()) return;
    evictor_.trim_if_possible();
    lock_.notify_all();
    if (options_.on_ready) lock_.call_back([&] { options_.on_ready(package); });
}

}  // namespace rove::code
