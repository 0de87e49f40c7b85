// rove::Work: a call that has arrived, for execution policies: rove::run_by<Policy>(f).
//
//   struct Queued {
//       static void run(rove::Work work) { queue.push(std::move(work)); }   // another thread pops it and calls work()
//   };
//   peer.sync(rove::run_by<Queued>(rove::fn<f>), 1);
//
// Policy::run is called on the node where the call arrives, in the thread that found it.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "rove/edge.h"

namespace rove {

namespace detail {

template <typename F, typename Policy, typename R, typename... Ps>
struct Offload;

// Runs body(); an exception ends the call, with the exception as its error.
template <typename Body>
void guarded(rove_here* here, Body&& body) {
#ifdef __cpp_exceptions
    try {
        body();
    } catch (...) {
        (void)rove_fail_caught(here);
    }
#else
    (void)here;
    body();
#endif
}

// One run() of a policy, shared by its caller and by the Work. An exception that leaves run() destroys the Work before the exception can be
// examined. So the Work leaves its call here, and the caller of run() ends it with that exception.
class PolicyRun {
public:
    PolicyRun() : state_(new State) {}
    PolicyRun(const PolicyRun& other) noexcept : state_(other.state_) {
        state_->holders.fetch_add(1, std::memory_order_relaxed);
    }
    PolicyRun(PolicyRun&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    PolicyRun& operator=(PolicyRun&&) = delete;
    ~PolicyRun() {
        if (state_ != nullptr && state_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete state_;
    }
    // Called by the Work's destructor. False: the Work is not being destroyed by an exception of run(). The thread is compared first,
    // because only the thread that runs run() may touch the other members.
    [[nodiscard]] bool leave(rove_here* call) noexcept {
        if (pthread_equal(pthread_self(), state_->thread) == 0 || !state_->runs) return false;
        if (std::uncaught_exceptions() <= state_->exceptions) return false;
        state_->left = call;
        return true;
    }
    // run() has ended. Returns the call that was left here, or null.
    [[nodiscard]] rove_here* end() noexcept {
        state_->runs = false;
        return std::exchange(state_->left, nullptr);
    }

private:
    struct State {
        std::atomic<int> holders{1};
        const pthread_t thread = pthread_self();
        const int exceptions = std::uncaught_exceptions();
        bool runs = true;
        rove_here* left = nullptr;
    };
    State* state_;  // null: moved from
};

}  // namespace detail

// A call that has arrived. Calling it runs the function and replies: once, in any thread, at any time before the node ends. It owns a copy
// of the arguments' bytes. A Work that is destroyed without having been called ends its call as `cancelled`. An exception that leaves
// Policy::run() ends the call as the function's own exception would, unless run() has called the Work or put it elsewhere: then the
// exception is written to the log.
class Work {
public:
    Work(Work&& other) noexcept
        : payload_(std::move(other.payload_)),
          run_(std::move(other.run_)),
          kept_(std::exchange(other.kept_, nullptr)),
          body_(other.body_) {}
    Work& operator=(Work&&) = delete;
    ~Work() {
        if (kept_ != nullptr && !run_.leave(kept_)) drop(kept_);
    }
    void operator()() {
        rove_here* here = std::exchange(kept_, nullptr);
        if (here == nullptr) return;
        detail::guarded(here, [&] { body_(here, payload_.data(), payload_.size()); });
        rove_release(here);
    }

private:
    template <typename F, typename Policy, typename R, typename... Ps>
    friend struct detail::Offload;
    using Body = void (*)(rove_here*, const void*, std::size_t);

    // Runs Policy::run() on a new Work.
    template <typename Policy>
    static void give_to_policy(rove_here* here, const void* payload, std::size_t size, Body body) {
        detail::PolicyRun run;
        Work work(here, payload, size, body, run);
#ifdef __cpp_exceptions
        try {
            Policy::run(std::move(work));
        } catch (...) {
            rove_here* const left = run.end();
            if (rove_here* call = left != nullptr ? left : std::exchange(work.kept_, nullptr)) {
                (void)rove_fail_caught(call);
                rove_release(call);
            } else {
                rove_report_caught("an execution policy");
            }
        }
#else
        Policy::run(std::move(work));
#endif
        if (rove_here* const left = run.end()) drop(left);
    }
    Work(rove_here* here, const void* payload, std::size_t size, Body body, const detail::PolicyRun& run)
        : payload_(static_cast<const std::byte*>(payload), static_cast<const std::byte*>(payload) + size),
          run_(run),
          kept_(rove_keep(here)),
          body_(body) {
#ifdef __cpp_exceptions
        if (kept_ == nullptr) throw std::bad_alloc();
#else
        if (kept_ == nullptr) (void)rove_fail_as(here, ROVE_OVERLOADED, "no memory to keep the call");
#endif
    }
    static void drop(rove_here* call) {
        (void)rove_fail_as(call, ROVE_CANCELLED, "the function's execution policy dropped the call");
        rove_release(call);
    }

    // Copied before the call is kept: if there is no memory for the copy, the call has not been taken over yet, and fails.
    std::vector<std::byte> payload_;
    detail::PolicyRun run_;
    rove_here* kept_;
    Body body_;
};

}  // namespace rove
