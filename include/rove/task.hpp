// Enough of coroutines to use Calls in them: a lazy Task, and sync_wait, which runs one to its end. No scheduler: a coroutine goes
// on in the thread that serves the node of the call that it waited for; while sync_wait waits, that is its own where it can be.
//
//   rove::Task<double> walk(rove::Peer peer) {
//       const auto next = co_await peer.async(rove::fn<step>, 1);
//       co_return co_await peer.async(rove::fn<weight>, next);
//   }
//   double w = rove::sync_wait(walk(peer));
#pragma once

#include <cxxabi.h>

#include <atomic>
#include <coroutine>
#include <exception>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>

#include "rove/call.hpp"

namespace rove {

template <typename T = void>
class Task;

namespace detail {

// What sync_wait knows of the task it runs.
struct Driver {
    std::atomic<void*> node{nullptr};  // that the task, or what it waits for, was last seen waiting for
    std::atomic<bool> done{false};
};

struct PromiseBase {
    std::coroutine_handle<> continuation = std::noop_coroutine();
    std::exception_ptr error;
    Driver* driver = nullptr;

    struct Final {
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        template <typename Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) noexcept {
            return ended.promise().continuation;
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
            throw;  // it ends its thread (pthread_exit): whoever resumed it goes as well, or keeps the thread where it is the node's
        } catch (...) {
            error = std::current_exception();
        }
#endif
    }
    void waits_for(void* node) noexcept {
        if (driver != nullptr) driver->node.store(node);
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

}  // namespace detail

template <typename T>
class [[nodiscard]] Task {
public:
    using promise_type = detail::Promise<T>;
    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Task& operator=(Task&&) = delete;
    ~Task() {
        if (handle_) handle_.destroy();
    }
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <typename Parent>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Parent> parent) {
        handle_.promise().continuation = parent;
        if constexpr (requires { parent.promise().driver; }) handle_.promise().driver = parent.promise().driver;
        return handle_;
    }
    T await_resume() { return handle_.promise().take(); }

private:
    friend promise_type;
    explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    std::coroutine_handle<promise_type> handle_;
};

namespace detail {

template <typename T>
Task<T> Promise<T>::get_return_object() {
    return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
    return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}

// Runs something awaitable, and says when it has ended.
template <typename T>
struct Runner {
    struct promise_type : PromiseBase {
        std::conditional_t<std::is_void_v<T>, std::monostate, std::optional<T>> value;
        Runner get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        // The last thing that this coroutine does: whoever sees it may destroy it.
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

}  // namespace detail

// Runs a Task (or anything that can be awaited) to its end in this thread, and gives its result or throws what it threw.
template <typename Awaitable>
auto sync_wait(Awaitable&& awaitable) -> decltype(awaitable.await_resume()) {
    using T = decltype(awaitable.await_resume());
    detail::Driver driver;
    const auto runner = detail::run<T>(awaitable);
    struct Destroy {
        std::coroutine_handle<> handle;
        ~Destroy() { handle.destroy(); }
    } const destroy{runner.handle};
    runner.handle.promise().driver = &driver;
    runner.handle.resume();
    constexpr std::int64_t kSliceNs = 10'000'000;  // it may have begun to wait for another node meanwhile
    while (!driver.done.load()) {
        if (void* node = driver.node.load())
            rove_drive(
                node, [](void* of) { return static_cast<detail::Driver*>(of)->done.load() ? 1 : 0; }, &driver,
                kSliceNs);
        else
            std::this_thread::yield();
    }
    auto& promise = runner.handle.promise();
    if (promise.error) std::rethrow_exception(promise.error);
    if constexpr (!std::is_void_v<T>) return std::move(*promise.value);
}

namespace detail {

// One of several that a coroutine waits for: awaits it, keeps what it gives, and counts down.
template <typename T>
struct Part {
    struct promise_type : PromiseBase {
        Countdown* countdown = nullptr;
        std::conditional_t<std::is_void_v<T>, std::monostate, std::optional<T>> value;
        Part get_return_object() { return Part(std::coroutine_handle<promise_type>::from_promise(*this)); }
        // The last thing that this coroutine does: whoever counts down to nothing resumes the one that waits, which destroys it.
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
    explicit Part(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    Part(Part&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Part& operator=(Part&&) = delete;
    ~Part() {
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
Part<T> part_of(Awaitable& awaitable) {
    if constexpr (std::is_void_v<T>) {
        co_await awaitable;
    } else {
        auto* self = static_cast<typename Part<T>::promise_type*>(co_await PromiseOf{});
        self->value.emplace(co_await awaitable);
    }
}
template <typename T>
struct IsTask : std::false_type {};
template <typename T>
struct IsTask<Task<T>> : std::true_type {};

}  // namespace detail

// All of several Tasks, or Tasks and Calls; holds those that it was given as temporaries and refers to the others. The Tasks begin
// when it is awaited, one after the other, each up to where it first waits.
template <typename... Awaitables>
class [[nodiscard]] AllTasks {
public:
    explicit AllTasks(Awaitables&&... parts) : awaited_(std::forward<Awaitables>(parts)...) {}
    AllTasks(AllTasks&& other) noexcept : awaited_(std::move(other.awaited_)) {}  // before it is awaited
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <typename Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) {
        countdown_.left = 1;  // this one is counted until all have begun
        countdown_.waiting = waiting.address();
        detail::Driver* driver = nullptr;
        if constexpr (requires { waiting.promise().driver; }) driver = waiting.promise().driver;
        std::apply([&](auto&... each) { parts_.emplace(detail::part_of<ValueOf<decltype(each)>>(each)...); }, awaited_);
        std::apply([&](auto&... each) { (each.start(countdown_, driver), ...); }, *parts_);
        return countdown_.left.fetch_sub(1) != 1;
    }
    // The results in their order; std::monostate for void. Throws the first error, in their order, when all have ended.
    auto await_resume() {
        return std::apply([](auto&... each) { return std::tuple{each.take()...}; }, *parts_);
    }
    // The same, from a thread that is no coroutine.
    auto get() { return sync_wait(*this); }

private:
    template <typename A>
    using ValueOf = decltype(std::declval<std::remove_reference_t<A>&>().await_resume());
    std::tuple<Awaitables...> awaited_;
    std::optional<std::tuple<detail::Part<ValueOf<Awaitables>>...>> parts_;
    detail::Countdown countdown_{};
};
template <typename... Awaitables>
    requires(detail::IsTask<std::remove_cvref_t<Awaitables>>::value || ...)
AllTasks<Awaitables...> when_all(Awaitables&&... parts) {
    return AllTasks<Awaitables...>(std::forward<Awaitables>(parts)...);
}

}  // namespace rove
