// The results of rove::when_all and rove::when_any (rove/call.hpp).
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "rove/detail/pending.hpp"
#include "rove/detail/throw.hpp"
#include "rove/edge.h"
#include "rove/within.hpp"

namespace rove::detail {

template <typename T>
inline constexpr bool kIsCall = false;
template <typename T>
inline constexpr bool kIsCall<Call<T>> = true;
template <typename T>
inline constexpr bool kIsCalls = kIsCall<T>;
template <typename T>
inline constexpr bool kIsCalls<std::vector<T>> = kIsCall<T>;

template <typename T>
auto value_of(Call<T>& call) {
    if constexpr (std::is_void_v<T>) {
        call.get();
        return std::monostate{};
    } else {
        return call.get();
    }
}
template <typename C>
void wait_for_end(C& call) {
    if (const rove_pending* pending = Access::pending(call)) (void)rove_pending_wait(pending, kForever);
}

// All of several calls; holds those that it was given as temporaries and refers to the others.
template <typename... Calls>
class [[nodiscard]] AllOf {
public:
    explicit AllOf(Calls&&... calls) : calls_(std::forward<Calls>(calls)...) {}
    AllOf(AllOf&& other) noexcept : calls_(std::move(other.calls_)) {}
    auto get() {
        std::apply([](auto&... each) { (wait_for_end(each), ...); }, calls_);
        return std::apply([](auto&... each) { return std::tuple{value_of(each)...}; }, calls_);
    }
    [[nodiscard]] bool await_ready() const {
        return std::apply([](const auto&... each) { return (each.done() && ...); }, calls_);
    }
    template <typename Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) {
        return await_all(std::apply([](auto&... each) { return std::vector{Access::pending(each)...}; }, calls_),
                         countdown_, asked_, waiting);
    }
    auto await_resume() {
        asked_.clear();
        return get();
    }

private:
    std::tuple<Calls...> calls_;
    Countdown countdown_{};
    Asked asked_;  // destroyed before the countdown and the calls, which it refers to
};

// The first of several calls of one node, which stay their owner's.
class [[nodiscard]] AnyOf {
public:
    explicit AnyOf(std::vector<const rove_pending*> calls) : calls_(std::move(calls)) {
        if (calls_.empty()) throw_error(ErrorCode::invalid, "when_any of no calls would never end");
    }
    AnyOf(AnyOf&&) = default;
    ~AnyOf() { take_back(); }
    std::size_t get() const {
        std::vector<rove_pending> pendings;
        for (std::size_t i = 0; i < calls_.size(); ++i) {
            if (calls_[i] == nullptr) return i;
            pendings.push_back(*calls_[i]);
        }
        std::size_t which = 0;
        check(rove_pending_any(pendings.data(), pendings.size(), kForever, &which));
        return which;
    }
    [[nodiscard]] bool await_ready() const {
        return std::any_of(calls_.begin(), calls_.end(),
                           [](const rove_pending* each) { return each == nullptr || rove_pending_done(each) != 0; });
    }
    template <typename Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) {
        const auto first = std::make_shared<FirstOf>(waiting.address());
        for (const rove_pending* each : calls_) {
            note_engine(waiting, each->engine);
            auto held = std::make_unique<std::shared_ptr<FirstOf>>(first);
            if (rove_pending_notify(each, &FirstOf::ended, held.get()) == 0) {  // this call has ended already
                first->bits.fetch_or(FirstOf::kFired);
                break;
            }
            asked_.push_back({*each, held.release()});
        }
        return first->suspend();
    }
    std::size_t await_resume() {
        take_back();
        return get();
    }

private:
    struct AskedCall {
        rove_pending call;
        std::shared_ptr<FirstOf>* held;  // freed by the call's end, or by take_back()
    };
    // Withdraws the requests to calls that are still in flight.
    void take_back() {
        for (const auto& [call, held] : asked_)
            if (rove_pending_notify(&call, nullptr, nullptr) != 0) delete held;
        asked_.clear();
    }
    std::vector<const rove_pending*> calls_;
    std::vector<AskedCall> asked_;
};

template <typename T>
void add_pending(std::vector<const rove_pending*>& to, const Call<T>& call) {
    to.push_back(Access::pending(call));
}
template <typename T>
void add_pending(std::vector<const rove_pending*>& to, const std::vector<Call<T>>& calls) {
    for (const Call<T>& call : calls) to.push_back(Access::pending(call));
}

}  // namespace rove::detail
