// A call in flight without its type: what rove/call.hpp and rove/task.hpp are made of.
//
// Threads: one at a time for each object, except Countdown and FirstOf, which calls count down from any thread.
#pragma once

#include <cxxabi.h>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rove/detail/throw.hpp"
#include "rove/edge.h"
#include "rove/error.hpp"

namespace rove {

template <typename T>
class Call;

namespace detail {

// Reaches the members of Call, Buffer and Work that their users do not need.
struct Access {
    template <typename T>
    [[nodiscard]] static Call<T> call(rove_pending pending) {
        return Call<T>(pending);
    }
    // A call whose whole result is written to the caller's memory.
    [[nodiscard]] static Call<void> call_into(rove_pending pending, std::span<std::byte> into);
    template <typename C, typename... Arguments>
    [[nodiscard]] static C make(Arguments&&... arguments) {
        return C(std::forward<Arguments>(arguments)...);
    }
    // Null: the call has ended without having been sent.
    template <typename C>
    [[nodiscard]] static const rove_pending* pending(const C& call) {
        return call.raw();
    }
    template <typename B>
    [[nodiscard]] static auto& memory(const B& buffer) {
        return buffer.memory();
    }
    template <typename B>
    [[nodiscard]] static auto offset_bytes(const B& buffer) {
        return buffer.offset_bytes();
    }
};

[[noreturn]] inline void throw_failure() {
    const rove_failure* why = rove_last_failure();
    throw_error(Error::reported(static_cast<ErrorCode>(why->error), why->message, why->node, why->type));
}
// Throws what rove_last_failure reports if `error` is one.
inline void check(int error) {
    if (error != ROVE_OK) throw_failure();
}

// Owns the slot of a call in flight, and drops the call when it is destroyed.
class Pending {
public:
    Pending() = default;
    explicit Pending(rove_pending pending) : pending_(pending) {}
    Pending(Pending&& other) noexcept : pending_(std::exchange(other.pending_, {})) {}
    Pending& operator=(Pending&& other) noexcept {
        if (this != &other) {
            drop();
            pending_ = std::exchange(other.pending_, {});
        }
        return *this;
    }
    ~Pending() { drop(); }

    // invalid: the result was taken.
    [[nodiscard]] const rove_pending& raw() const {
        if (pending_.engine == nullptr) throw_error(ErrorCode::invalid, "the call's result was taken already");
        return pending_;
    }
    [[nodiscard]] rove_pending& raw() { return const_cast<rove_pending&>(std::as_const(*this).raw()); }
    void drop() {
        if (pending_.engine != nullptr) rove_pending_drop(&pending_);
        pending_.engine = nullptr;
    }

private:
    rove_pending pending_{};
};

// Drops a call at the end of a scope, after its result has been read.
struct Dropping {
    Pending& pending;
    ~Dropping() { pending.drop(); }
};

// ---- in coroutines

// Records for sync_wait which engine a coroutine of rove/task.hpp waits for.
template <typename Promise>
void note_engine(std::coroutine_handle<Promise> waiting, void* engine) {
    if constexpr (requires { waiting.promise().waits_for(engine); }) waiting.promise().waits_for(engine);
}
inline void resume(void* address) {
    std::coroutine_handle<>::from_address(address).resume();
}

// The calls that will resume a suspended coroutine. If the coroutine is destroyed instead, these requests are withdrawn.
class Asked {
public:
    Asked() = default;
    Asked(const Asked&) = delete;
    ~Asked() {
        for (const rove_pending& call : calls_) (void)rove_pending_notify(&call, nullptr, nullptr);
    }
    // To be called before the call is asked to resume the coroutine, which may continue in another thread from then on.
    void add(const rove_pending& call) { calls_.push_back(call); }
    void clear() { calls_.clear(); }

private:
    std::vector<rove_pending> calls_;
};

// Waits for a call in a coroutine. A coroutine that is destroyed while it waits is not resumed, whether or not the call is destroyed with it.
template <typename C>
class Awaiter {
public:
    explicit Awaiter(C& call) : call_(call) {}
    Awaiter(const Awaiter&) = delete;
    ~Awaiter() {
        if (asked_.engine != nullptr) (void)rove_pending_notify(&asked_, nullptr, nullptr);
    }
    [[nodiscard]] bool await_ready() const { return call_.done(); }
    template <typename Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) {
        const rove_pending pending = asked_ = *Access::pending(call_);
        note_engine(waiting, pending.engine);
        // The coroutine, and this object with it, may be destroyed when this returns.
        return rove_pending_notify(&pending, &resume, waiting.address()) != 0;
    }
    auto await_resume() {
        asked_.engine = nullptr;
        return call_.get();
    }

private:
    C& call_;
    rove_pending asked_{};
};

// Resumes a coroutine after the last of several calls has ended.
struct Countdown {
    std::atomic<std::size_t> left;
    void* waiting;
    static void ended(void* self) {
        auto* countdown = static_cast<Countdown*>(self);
        if (countdown->left.fetch_sub(1) == 1) resume(countdown->waiting);
    }
};

// Suspends until all calls have ended. False: they have ended already.
template <typename Promise>
bool await_all(const std::vector<const rove_pending*>& pendings, Countdown& countdown, Asked& asked,
               std::coroutine_handle<Promise> waiting) {
    countdown.left = 1;  // this function counts as one until all have been asked
    countdown.waiting = waiting.address();
    for (const rove_pending* pending : pendings) {
        if (pending == nullptr) continue;
        note_engine(waiting, pending->engine);
        asked.add(*pending);
        countdown.left.fetch_add(1);
        if (rove_pending_notify(pending, &Countdown::ended, &countdown) == 0) countdown.left.fetch_sub(1);
    }
    return countdown.left.fetch_sub(1) != 1;
}

// Resumes a coroutine after the first of several calls has ended, but not before all have been asked, because until then the coroutine's
// frame is in use.
struct FirstOf {
    static constexpr unsigned kAsked = 1, kFired = 2;
    std::atomic<unsigned> bits{0};
    void* waiting;
    explicit FirstOf(void* who) : waiting(who) {}
    [[nodiscard]] bool suspend() { return (bits.fetch_or(kAsked) & kFired) == 0; }
    static void ended(void* self) {
        const std::unique_ptr<std::shared_ptr<FirstOf>> held(static_cast<std::shared_ptr<FirstOf>*>(self));
        if ((*held)->bits.fetch_or(kFired) == kAsked) resume((*held)->waiting);
    }
};

// ---- callbacks

// The implementation of Call::then: passes the call to `callback` after the call's end.
template <typename C, typename Callback>
void then(C&& call, Callback&& callback) {
    struct State {
        std::remove_cvref_t<C> call;
        std::remove_cvref_t<Callback> callback;
        void run() {
#ifdef __cpp_exceptions
            try {
                callback(std::move(call));
            } catch (const abi::__forced_unwind&) {
                throw;  // pthread_exit: it ends the program's own thread; a thread of the node's is kept by the node
            } catch (...) {
                rove_report_caught("a callback given to then()");
            }
#else
            callback(std::move(call));
#endif
        }
        static void ended(void* self) {
            const std::unique_ptr<State> state(static_cast<State*>(self));
            state->run();
        }
    };
    auto state = std::make_unique<State>(State{std::forward<C>(call), std::forward<Callback>(callback)});
    const rove_pending* pending = Access::pending(state->call);
    State* given = state.release();
    if (pending == nullptr || rove_pending_notify(pending, &State::ended, given) == 0)
        rove_call_back(&State::ended, given);
}

}  // namespace detail
}  // namespace rove
