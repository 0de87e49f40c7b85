// Call<T>: one invocation in flight, and what can be done with several.
//
//   rove::Call<int> call = peer.async(rove::fn<f>, 1);
//   int value = call.get();                     waits; throws rove::Error, or rove::RemoteError if the function threw
//   int value = co_await call;                  in any coroutine (rove/task.hpp has one)
//   call.then([](rove::Call<int> ended) { … ended.get() … });
//   auto [a, b] = rove::when_all(first, second).get();
//   std::size_t index = rove::when_any(first, second).get();
//
// Ownership: a Call owns its invocation. Destroying a Call does not wait: the function may still run, and its reply is discarded. A Call
// may outlive its Node; then it ends as `cancelled`.
// Threads: each object may be used by one thread at a time. Coroutines and callbacks continue in the thread that serves the node, or at
// once in the thread that asked, if the call has ended already.
// Cost: results of up to 64 bytes need no allocation.
#pragma once

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "rove/detail/pending.hpp"
#include "rove/detail/several.hpp"
#include "rove/detail/travel.hpp"
#include "rove/edge.h"
#include "rove/error.hpp"
#include "rove/within.hpp"

namespace rove {

// One invocation in flight, whose function returns a T.
template <typename T = void>
class [[nodiscard]] Call {
public:
    using Value = T;

    // A call that has ended already, with nothing to wait for.
    Call()
        requires std::is_void_v<T>
        : ended_(true) {}
    Call(Call&& other) noexcept;
    Call& operator=(Call&& other) noexcept;
    ~Call() = default;

    // Waits for the end; returns the result, or throws the call's error. Once: after it get(), done(), wait_for() and cancel() are
    // `invalid`. The error's code says what happened: `disconnected`, `timed_out` and `cancelled` leave open whether the function has run.
    T get();
    // Whether the call has ended. Polls the node once if it has no thread of its own.
    [[nodiscard]] bool done() const { return ended_ || rove_pending_done(&pending_.raw()) != 0; }
    // Waits for the end; false: the time is over and the call is still in flight.
    template <typename Rep, typename Period>
    bool wait_for(std::chrono::duration<Rep, Period> time) const {
        return ended_ || rove_pending_wait(&pending_.raw(), detail::ns_of(time)) == ROVE_OK;
    }
    // Ends the call on this side with the error `cancelled`, if it is in flight. The function may run nevertheless.
    void cancel() {
        if (!ended_) rove_pending_cancel(&pending_.raw());
    }
    // Gives the Call away: callback(Call<T> ended) runs when it has ended, in the thread that serves the node. Where it has ended already,
    // the callback runs here, before this returns; or, if little stack is left, after the callback that calls this. An exception that
    // leaves the callback is written to the node's log as an error, because no code waits for it.
    template <typename Callback>
    void then(Callback callback) && {
        detail::then(std::move(*this), std::move(callback));
    }
    template <typename Callback>
    void then(Callback callback) & {
        std::move(*this).then(std::move(callback));
    }
    // co_await call: as get(), without blocking the thread.
    [[nodiscard]] detail::Awaiter<Call> operator co_await() & { return detail::Awaiter<Call>(*this); }
    [[nodiscard]] detail::Awaiter<Call> operator co_await() && { return detail::Awaiter<Call>(*this); }
    T await_resume() { return get(); }  // names the type that awaiting it gives

private:
    friend struct detail::Access;
    explicit Call(rove_pending pending) : pending_(pending) {}
    Call(rove_pending pending, std::span<std::byte> into)
        requires std::is_void_v<T>
        : pending_(pending), into_(into) {}
    [[nodiscard]] const rove_pending* raw() const { return ended_ ? nullptr : &pending_.raw(); }

    // A result of a fixed size up to this is read through the stack.
    static constexpr std::size_t kResultOnStackBytesMax = 256;

    detail::Pending pending_;
    std::span<std::byte> into_;  // the caller's memory for the whole result
    bool ended_ = false;         // true: a call that has ended without having been sent
};

// Many calls of one type, as PeerGroup::broadcast returns them. Can be awaited.
template <typename T>
class [[nodiscard]] Calls {
public:
    Calls() = default;
    explicit Calls(std::vector<Call<T>> calls) : calls_(std::move(calls)) {}
    Calls(Calls&& other) noexcept : calls_(std::move(other.calls_)) {}
    Calls& operator=(Calls&& other) noexcept {
        calls_ = std::move(other.calls_);
        return *this;
    }
    [[nodiscard]] std::size_t size() const { return calls_.size(); }
    [[nodiscard]] Call<T>& operator[](std::size_t index) { return calls_[index]; }
    [[nodiscard]] auto begin() { return calls_.begin(); }
    [[nodiscard]] auto end() { return calls_.end(); }
    void add(Call<T> call) { calls_.push_back(std::move(call)); }
    // Waits for all; returns a std::vector of the results in the order of the calls (nothing for void), or throws the first error in that
    // order.
    auto get();

    [[nodiscard]] bool await_ready() const {
        return std::all_of(calls_.begin(), calls_.end(), [](const Call<T>& call) { return call.done(); });
    }
    template <typename Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) {
        std::vector<const rove_pending*> pendings;
        for (const Call<T>& call : calls_) pendings.push_back(detail::Access::pending(call));
        return detail::await_all(pendings, countdown_, asked_, waiting);
    }
    auto await_resume() {
        asked_.clear();
        return get();
    }

private:
    std::vector<Call<T>> calls_;
    detail::Countdown countdown_{};
    detail::Asked asked_;
};

// All of several calls, of any types: when_all(a, b).get() waits for all and returns a std::tuple of the results in their order, with
// std::monostate for void; or throws the first error in their order, after all have ended. Can be awaited. Temporaries are moved into it,
// named calls are referred to. (For rove::Tasks: rove/task.hpp.)
template <typename... Cs>
    requires(sizeof...(Cs) > 0 && (detail::kIsCall<std::remove_cvref_t<Cs>> && ...))
auto when_all(Cs&&... calls) {
    return detail::AllOf<Cs...>(std::forward<Cs>(calls)...);
}
// The same for many calls of one type: get() returns a std::vector.
template <typename T>
Calls<T> when_all(std::vector<Call<T>> calls) {
    return Calls<T>(std::move(calls));
}

// The first of several calls of one node, or of vectors of them: get(), and co_await, return the index of one that has ended, counted over
// all arguments in their order. All calls stay the caller's, so they must have names. invalid: no calls, or calls of several nodes.
template <typename... Named>
auto when_any(Named&&... calls) {
    static_assert(sizeof...(Named) > 0, "rove: rove::when_any of no calls would never end");
    constexpr bool have_names =
        ((std::is_lvalue_reference_v<Named> && detail::kIsCalls<std::remove_cvref_t<Named>>) && ...);
    static_assert(have_names,
                  "rove: rove::when_any takes Calls that have names, and vectors of them that do: they stay the "
                  "caller's, and a temporary would be gone before it has ended");
    std::vector<const rove_pending*> pendings;
    if constexpr (have_names) (detail::add_pending(pendings, calls), ...);
    return detail::AnyOf(std::move(pendings));
}

// ---- implementation

template <typename T>
Call<T>::Call(Call&& other) noexcept
    : pending_(std::move(other.pending_)), into_(other.into_), ended_(std::exchange(other.ended_, false)) {}

template <typename T>
Call<T>& Call<T>::operator=(Call&& other) noexcept {
    pending_ = std::move(other.pending_);
    into_ = other.into_;
    ended_ = std::exchange(other.ended_, false);
    return *this;
}

template <typename T>
T Call<T>::get() {
    namespace travel = detail::travel;
    if constexpr (std::is_void_v<T>) {
        if (std::exchange(ended_, false)) return;
        std::size_t size = 0;
        detail::check(rove_pending_take(&pending_.raw(), into_.data(), into_.size(), &size));
        if (size != into_.size()) travel::cut_short();
    } else if constexpr (travel::Bitwise<T> && sizeof(T) <= kResultOnStackBytesMax) {
        alignas(T) std::byte raw[sizeof(T)];
        std::size_t size = 0;
        detail::check(rove_pending_take(&pending_.raw(), raw, sizeof raw, &size));
        if (size != sizeof raw) travel::cut_short();
        return travel::from_raw<T>(raw);
    } else {
        const detail::Dropping dropping{pending_};
        const void* data = nullptr;
        std::size_t size = 0;
        if constexpr (travel::can_gather<T>()) {
            travel::Gathering<T> gathering;
            detail::check(rove_pending_gather(&pending_.raw(), &travel::Gathering<T>::take, &gathering, &data, &size));
            if (data == nullptr) return gathering.value();
        } else {
            detail::check(rove_pending_result(&pending_.raw(), &data, &size));
        }
        travel::Input in(data, size);
        T result = travel::read<T>(in);
        in.finish();
        return result;
    }
}

template <typename T>
auto Calls<T>::get() {
    for (Call<T>& call : calls_) detail::wait_for_end(call);
    if constexpr (std::is_void_v<T>) {
        for (Call<T>& call : calls_) call.get();
    } else {
        std::vector<T> results;
        results.reserve(calls_.size());
        for (Call<T>& call : calls_) results.push_back(call.get());
        return results;
    }
}

inline Call<void> detail::Access::call_into(rove_pending pending, std::span<std::byte> into) {
    return Call<void>(pending, into);
}

}  // namespace rove
