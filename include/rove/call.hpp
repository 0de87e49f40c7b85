// Call<T>: one invocation in flight, and what can be done with several.
//
//   T value = call.get();                 waits; throws rove::Error, or rove::RemoteError where the function threw
//   T value = co_await call;              in any coroutine; it goes on in the thread that serves the node (see rove/task.hpp)
//   call.then([](rove::Call<T> ended) { … ended.get() … });
//   auto [a, b] = rove::when_all(first, second).get();
//   std::size_t index = rove::when_any(first, second).get();
//
// Dropping a Call forgets it and does not wait: the function may run nevertheless, and its reply is discarded.
// Threads: one at a time for each object.
#pragma once

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "rove/edge.h"
#include "rove/error.hpp"
#include "rove/travel.hpp"
#include "rove/within.hpp"

namespace rove {

namespace detail {

[[noreturn]] inline void throw_failure() {
    const rove_failure* why = rove_last_failure();
    throw_error(Error::told(static_cast<ErrorCode>(why->error), why->message, why->node, why->type));
}
inline void check(int error) {
    if (error != ROVE_OK) throw_failure();
}

// A call in flight without its type; owns the slot.
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

    [[nodiscard]] bool exists() const { return pending_.node != nullptr; }
    [[nodiscard]] const rove_pending& raw() const {
        if (pending_.node == nullptr) throw_error(ErrorCode::invalid, "the call's result was taken already");
        return pending_;
    }
    [[nodiscard]] rove_pending& raw() { return const_cast<rove_pending&>(std::as_const(*this).raw()); }
    void drop() {
        if (pending_.node != nullptr) rove_pending_drop(&pending_);
        pending_.node = nullptr;
    }

private:
    rove_pending pending_{};
};

// Drops at the end of a scope what has been read.
struct Dropping {
    Pending& pending;
    ~Dropping() { pending.drop(); }
};

// The coroutines of rove/task.hpp want to know which node they wait for.
template <typename Promise>
void note_node(std::coroutine_handle<Promise> waiting, void* node) {
    if constexpr (requires { waiting.promise().waits_for(node); }) waiting.promise().waits_for(node);
}
inline void resume(void* address) {
    std::coroutine_handle<>::from_address(address).resume();
}

// The calls that were asked to resume a suspended coroutine. Where it is destroyed instead, they are told: nothing resumes it later.
class Asked {
public:
    Asked() = default;
    Asked(const Asked&) = delete;
    ~Asked() {
        for (const rove_pending& call : calls_) (void)rove_pending_notify(&call, nullptr, nullptr);
    }
    // Before the call is asked: the coroutine may go on in another thread as soon as it is.
    void add(const rove_pending& call) { calls_.push_back(call); }
    void clear() { calls_.clear(); }

private:
    std::vector<rove_pending> calls_;
};

// Waits for a call in a coroutine. One that is destroyed while it waits is not resumed, whether or not the call goes with it.
template <typename C>
class Awaiter {
public:
    explicit Awaiter(C& call) : call_(call) {}
    Awaiter(const Awaiter&) = delete;
    ~Awaiter() {
        if (asked_.node != nullptr) (void)rove_pending_notify(&asked_, nullptr, nullptr);
    }
    [[nodiscard]] bool await_ready() const { return call_.done(); }
    template <typename Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) {
        const rove_pending pending = asked_ = *call_.raw();
        note_node(waiting, pending.node);
        // The coroutine, and this with it, may be gone when this returns.
        return rove_pending_notify(&pending, &resume, waiting.address()) != 0;
    }
    auto await_resume() {
        asked_.node = nullptr;
        return call_.get();
    }

private:
    C& call_;
    rove_pending asked_{};
};

}  // namespace detail

template <typename T = void>
class [[nodiscard]] Call {
public:
    using Value = T;
    // A call that has ended already, with nothing to wait for.
    Call()
        requires std::is_void_v<T>
        : ended_(true) {}
    Call(Call&& other) noexcept
        : pending_(std::move(other.pending_)), into_(other.into_), ended_(std::exchange(other.ended_, false)) {}
    Call& operator=(Call&& other) noexcept {
        pending_ = std::move(other.pending_);
        into_ = other.into_;
        ended_ = std::exchange(other.ended_, false);
        return *this;
    }
    ~Call() = default;
    explicit Call(rove_pending pending) : pending_(pending) {}
    // One whose result goes to memory of the caller's, all of it.
    Call(rove_pending pending, std::span<std::byte> into)
        requires std::is_void_v<T>
        : pending_(pending), into_(into) {}

    // True when the call has ended. Polls once where the node has no thread of its own.
    [[nodiscard]] bool done() const { return ended_ || rove_pending_done(&pending_.raw()) != 0; }
    // False when the time is up and the call still in flight.
    template <typename Rep, typename Period>
    bool wait_for(std::chrono::duration<Rep, Period> time) const {
        return ended_ || rove_pending_wait(&pending_.raw(), detail::ns_of(time)) == ROVE_OK;
    }
    // Waits, and gives the result or throws the call's error. Once.
    T get() {
        if constexpr (std::is_void_v<T>) {
            if (std::exchange(ended_, false)) return;
            std::size_t size = 0;
            detail::check(rove_pending_take(&pending_.raw(), into_.data(), into_.size(), &size));
            if (size != into_.size()) travel::cut_short();
        } else if constexpr (travel::Bitwise<T> && sizeof(T) <= 256) {
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
                detail::check(
                    rove_pending_gather(&pending_.raw(), &travel::Gathering<T>::take, &gathering, &data, &size));
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
    // Ends it from this side with the error `cancelled`, if it is in flight; the function may run nevertheless.
    void cancel() {
        if (!ended_) rove_pending_cancel(&pending_.raw());
    }
    // callback(Call<T> ended) runs once it has, in the thread that serves the node, or at once here. The Call is gone for the caller.
    // Nobody waits for the callback: an exception that it lets out is written to the node's log as an error, in either thread.
    template <typename Callback>
    void then(Callback callback) &&;
    template <typename Callback>
    void then(Callback callback) & {
        std::move(*this).then(std::move(callback));
    }

    // ---- awaitable
    [[nodiscard]] detail::Awaiter<Call> operator co_await() & { return detail::Awaiter<Call>(*this); }
    [[nodiscard]] detail::Awaiter<Call> operator co_await() && { return detail::Awaiter<Call>(*this); }
    T await_resume() { return get(); }  // what awaiting it gives

    // For rove's own templates. Null: ended without having been sent.
    [[nodiscard]] const rove_pending* raw() const { return ended_ ? nullptr : &pending_.raw(); }

private:
    detail::Pending pending_;
    std::span<std::byte> into_;
    bool ended_ = false;
};

namespace detail {

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
                throw;  // it ends its thread (pthread_exit): the program's own; one of the node's is kept by it
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
    const rove_pending* pending = state->call.raw();
    State* given = state.release();
    if (pending == nullptr || rove_pending_notify(pending, &State::ended, given) == 0) State::ended(given);
}

}  // namespace detail

template <typename T>
template <typename Callback>
void Call<T>::then(Callback callback) && {
    detail::then(std::move(*this), std::move(callback));
}

namespace detail {

// Runs a coroutine on when the last of several has ended.
struct Countdown {
    std::atomic<std::size_t> left;
    void* waiting;
    static void ended(void* self) {
        auto* countdown = static_cast<Countdown*>(self);
        if (countdown->left.fetch_sub(1) == 1) resume(countdown->waiting);
    }
};
// … or the first. Not before all have been asked: the coroutine's frame is in use until then.
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

template <typename T>
auto value_of(Call<T>& call) {
    if constexpr (std::is_void_v<T>) {
        call.get();
        return std::monostate{};
    } else {
        return call.get();
    }
}

// Suspends until all have ended; false: they had.
template <typename Promise>
bool await_all(const std::vector<const rove_pending*>& pendings, Countdown& countdown, Asked& asked,
               std::coroutine_handle<Promise> waiting) {
    countdown.left = 1;  // this one is counted until all have been asked
    countdown.waiting = waiting.address();
    for (const rove_pending* pending : pendings) {
        if (pending == nullptr) continue;
        note_node(waiting, pending->node);
        asked.add(*pending);
        countdown.left.fetch_add(1);
        if (rove_pending_notify(pending, &Countdown::ended, &countdown) == 0) countdown.left.fetch_sub(1);
    }
    return countdown.left.fetch_sub(1) != 1;
}

}  // namespace detail

// All of several calls; holds those that it was given as temporaries and refers to the others.
template <typename... Calls>
class [[nodiscard]] AllOf {
public:
    explicit AllOf(Calls&&... calls) : calls_(std::forward<Calls>(calls)...) {}
    AllOf(AllOf&& other) noexcept : calls_(std::move(other.calls_)) {}
    // The results in their order; std::monostate for void. Throws the first error, in their order, when all have ended.
    auto get() {
        wait();
        return std::apply([](auto&... each) { return std::tuple{detail::value_of(each)...}; }, calls_);
    }
    [[nodiscard]] bool await_ready() const {
        return std::apply([](const auto&... each) { return (each.done() && ...); }, calls_);
    }
    template <typename Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) {
        return detail::await_all(std::apply([](auto&... each) { return std::vector{each.raw()...}; }, calls_),
                                 countdown_, asked_, waiting);
    }
    auto await_resume() {
        asked_.clear();
        return get();
    }

private:
    void wait() {
        std::apply([](auto&... each) { (wait_one(each), ...); }, calls_);
    }
    template <typename C>
    static void wait_one(C& call) {
        if (const rove_pending* pending = call.raw()) (void)rove_pending_wait(pending, -1);
    }
    std::tuple<Calls...> calls_;
    detail::Countdown countdown_{};
    detail::Asked asked_;  // destroyed before what it counts in, and before the calls
};
template <typename C>
concept Waitable = requires(const std::remove_reference_t<C>& call) {
    { call.raw() } -> std::convertible_to<const rove_pending*>;
};
template <Waitable... Calls>
    requires(sizeof...(Calls) > 0)
AllOf<Calls...> when_all(Calls&&... calls) {
    return AllOf<Calls...>(std::forward<Calls>(calls)...);
}

// Many calls of one type.
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
    // The results in their order. Throws the first error, in their order, when all have ended.
    auto get() {
        for (Call<T>& call : calls_)
            if (const rove_pending* pending = call.raw()) (void)rove_pending_wait(pending, -1);
        if constexpr (std::is_void_v<T>) {
            for (Call<T>& call : calls_) call.get();
        } else {
            std::vector<T> results;
            results.reserve(calls_.size());
            for (Call<T>& call : calls_) results.push_back(call.get());
            return results;
        }
    }
    [[nodiscard]] bool await_ready() const {
        return std::all_of(calls_.begin(), calls_.end(), [](const Call<T>& call) { return call.done(); });
    }
    template <typename Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) {
        std::vector<const rove_pending*> pendings;
        for (const Call<T>& call : calls_) pendings.push_back(call.raw());
        return detail::await_all(std::move(pendings), countdown_, asked_, waiting);
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
template <typename T>
Calls<T> when_all(std::vector<Call<T>> calls) {
    return Calls<T>(std::move(calls));
}

// The index of one that has ended; it stays the caller's, as do the others. They must be calls of one node.
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
        detail::check(rove_pending_any(pendings.data(), pendings.size(), -1, &which));
        return which;
    }
    [[nodiscard]] bool await_ready() const {
        return std::any_of(calls_.begin(), calls_.end(),
                           [](const rove_pending* each) { return each == nullptr || rove_pending_done(each) != 0; });
    }
    template <typename Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) {
        const auto first = std::make_shared<detail::FirstOf>(waiting.address());
        for (const rove_pending* each : calls_) {
            detail::note_node(waiting, each->node);
            auto held = std::make_unique<std::shared_ptr<detail::FirstOf>>(first);
            if (rove_pending_notify(each, &detail::FirstOf::ended, held.get()) == 0) {  // it has ended meanwhile
                first->bits.fetch_or(detail::FirstOf::kFired);
                break;
            }
            told_.push_back({*each, held.release()});
        }
        return first->suspend();
    }
    std::size_t await_resume() {
        take_back();
        return get();
    }

private:
    struct Told {
        rove_pending call;
        std::shared_ptr<detail::FirstOf>* held;  // freed by the call's end, or here
    };
    // Those that are in flight still need not tell any more.
    void take_back() {
        for (const auto& [call, held] : told_)
            if (rove_pending_notify(&call, nullptr, nullptr) != 0) delete held;
        told_.clear();
    }
    std::vector<const rove_pending*> calls_;
    std::vector<Told> told_;
};
namespace detail {
template <typename T>
inline constexpr bool kIsCall = false;
template <typename T>
inline constexpr bool kIsCall<Call<T>> = true;
template <typename T>
inline void add_pending(std::vector<const rove_pending*>& to, const Call<T>& call) {
    to.push_back(call.raw());
}
template <typename T>
inline void add_pending(std::vector<const rove_pending*>& to, const std::vector<Call<T>>& calls) {
    for (const Call<T>& call : calls) to.push_back(call.raw());
}
template <typename T>
inline constexpr bool kIsCalls = kIsCall<T>;
template <typename T>
inline constexpr bool kIsCalls<std::vector<T>> = kIsCall<T>;
}  // namespace detail
// Of Calls, and vectors of them, in that order.
template <typename... Named>
AnyOf when_any(Named&&... calls) {
    static_assert(sizeof...(Named) > 0, "rove: rove::when_any of no calls would never end");
    constexpr bool have_names =
        ((std::is_lvalue_reference_v<Named> && detail::kIsCalls<std::remove_cvref_t<Named>>) && ...);
    static_assert(have_names,
                  "rove: rove::when_any takes Calls that have names, and vectors of them that do: they stay the "
                  "caller's, and a temporary would be gone before it has ended");
    std::vector<const rove_pending*> pendings;
    if constexpr (have_names) (detail::add_pending(pendings, calls), ...);
    return AnyOf(std::move(pendings));
}

}  // namespace rove
