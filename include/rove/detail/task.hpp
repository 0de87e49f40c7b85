// The coroutines of rove/task.hpp.
#pragma once

#include <cxxabi.h>

#include <atomic>
#include <coroutine>
#include <exception>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "rove/detail/pending.hpp"

namespace rove {

template <typename T>
class Task;

namespace detail {

// The state of a task that sync_wait runs.
struct Driver {
    std::atomic<void*> engine{nullptr};  // the engine whose call the task, or a task that it awaits, waited for last
    std::atomic<bool> done{false};
};

struct PromiseBase {
    std::coroutine_handle<> continuation;  // the coroutine that awaits it; null: none yet
    std::exception_ptr error;
    Driver* driver = nullptr;

    struct Final {
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        template <typename Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) noexcept {
            const std::coroutine_handle<> next = ended.promise().continuation;
            return next ? next : std::noop_coroutine();
        }
        void await_resume() const noexcept {}
    };
    std::suspend_always initial_suspend() noexcept { return {}; }
    Final final_suspend() noexcept { return {}; }
    void unhandled_exception() {
#ifdef __cpp_exceptions
        try {
            throw;
        } catch (const abi::__forced_unwind&) {
            throw;  // pthread_exit: it ends the program's own thread; a thread of the node's is kept by the node
        } catch (...) {
            error = std::current_exception();
        }
#endif
    }
    void waits_for(void* engine) noexcept {
        if (driver != nullptr) driver->engine.store(engine);
    }
};
template <typename T>
struct Promise : PromiseBase {
    std::optional<T> value;
    Task<T> get_return_object();
    template <typename U>
    void return_value(U&& result) {
        value.emplace(std::forward<U>(result));
    }
    T take() {
        if (error) std::rethrow_exception(error);
        return std::move(*value);
    }
};
template <>
struct Promise<void> : PromiseBase {
    Task<void> get_return_object();
    void return_void() noexcept {}
    void take() const {
        if (error) std::rethrow_exception(error);
    }
};

// Runs an awaitable, and records its end.
template <typename T>
struct Runner {
    struct promise_type : PromiseBase {
        std::conditional_t<std::is_void_v<T>, std::monostate, std::optional<T>> value;
        Runner get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        // The last act of this coroutine: the thread that sees `done` may destroy it.
        struct Finished {
            [[nodiscard]] bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
                ended.promise().driver->done.store(true);
            }
            void await_resume() const noexcept {}
        };
        Finished final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
    };
    std::coroutine_handle<promise_type> handle;
};
struct PromiseOf {  // gives a coroutine its own promise
    PromiseBase* promise = nullptr;
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <typename P>
    bool await_suspend(std::coroutine_handle<P> self) noexcept {
        promise = &self.promise();
        return false;
    }
    [[nodiscard]] PromiseBase* await_resume() const noexcept { return promise; }
};
template <typename T, typename Awaitable>
Runner<T> run(Awaitable& awaitable) {
    auto* self = static_cast<typename Runner<T>::promise_type*>(co_await PromiseOf{});
    if constexpr (std::is_void_v<T>)
        co_await awaitable;
    else
        self->value.emplace(co_await awaitable);
}

// One of several awaitables that a coroutine waits for: awaits it, keeps its result, and counts down.
template <typename T>
struct Branch {
    struct promise_type : PromiseBase {
        Countdown* countdown = nullptr;
        std::conditional_t<std::is_void_v<T>, std::monostate, std::optional<T>> value;
        Branch get_return_object() { return Branch(std::coroutine_handle<promise_type>::from_promise(*this)); }
        // The last act of this coroutine: the one that counts down to zero resumes the waiting coroutine, which destroys it.
        struct Finished {
            [[nodiscard]] bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
                Countdown* of = ended.promise().countdown;
                if (of->left.fetch_sub(1) != 1) return std::noop_coroutine();
                return std::coroutine_handle<>::from_address(of->waiting);
            }
            void await_resume() const noexcept {}
        };
        Finished final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
    };
    explicit Branch(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    Branch(Branch&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Branch& operator=(Branch&&) = delete;
    ~Branch() {
        if (handle_) handle_.destroy();
    }
    void start(Countdown& countdown, Driver* driver) {
        handle_.promise().countdown = &countdown;
        handle_.promise().driver = driver;
        countdown.left.fetch_add(1);
        handle_.resume();
    }
    auto take() {
        auto& promise = handle_.promise();
        if (promise.error) std::rethrow_exception(promise.error);
        if constexpr (std::is_void_v<T>)
            return std::monostate{};
        else
            return std::move(*promise.value);
    }

private:
    std::coroutine_handle<promise_type> handle_;
};
template <typename T, typename Awaitable>
Branch<T> branch_of(Awaitable& awaitable) {
    if constexpr (std::is_void_v<T>) {
        co_await awaitable;
    } else {
        auto* self = static_cast<typename Branch<T>::promise_type*>(co_await PromiseOf{});
        self->value.emplace(co_await awaitable);
    }
}
template <typename T>
struct IsTask : std::false_type {};
template <typename T>
struct IsTask<Task<T>> : std::true_type {};

// All of several Tasks, or of Tasks and Calls; holds those that it was given as temporaries and refers to the others.
template <typename... Awaitables>
class [[nodiscard]] AllTasks {
public:
    explicit AllTasks(Awaitables&&... given) : awaited_(std::forward<Awaitables>(given)...) {}
    AllTasks(AllTasks&& other) noexcept : awaited_(std::move(other.awaited_)) {}  // before it is awaited
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <typename Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) {
        countdown_.left = 1;  // this function counts as one until all have begun
        countdown_.waiting = waiting.address();
        Driver* driver = nullptr;
        if constexpr (requires { waiting.promise().driver; }) driver = waiting.promise().driver;
        std::apply([&](auto&... each) { branches_.emplace(branch_of<ValueOf<decltype(each)>>(each)...); }, awaited_);
        std::apply([&](auto&... each) { (each.start(countdown_, driver), ...); }, *branches_);
        return countdown_.left.fetch_sub(1) != 1;
    }
    auto await_resume() {
        return std::apply([](auto&... each) { return std::tuple{each.take()...}; }, *branches_);
    }
    auto get();

private:
    template <typename A>
    using ValueOf = decltype(std::declval<std::remove_reference_t<A>&>().await_resume());
    std::tuple<Awaitables...> awaited_;
    std::optional<std::tuple<Branch<ValueOf<Awaitables>>...>> branches_;
    Countdown countdown_{};
};
}  // namespace detail
}  // namespace rove
