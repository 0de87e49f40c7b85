// Coroutines that wait for Calls: a lazy Task, and sync_wait, which runs one to its end.
//
//   rove::Task<double> walk(rove::Peer peer) {
//       const auto next = co_await peer.async(rove::fn<step>, 1);
//       co_return co_await peer.async(rove::fn<weight>, next);
//   }
//   double w = rove::sync_wait(walk(peer));
//
// There is no scheduler. A coroutine continues in the thread that serves the node of the call that it waited for. While sync_wait waits,
// that is the thread in sync_wait, unless another thread serves the node. Calls can be awaited in any other coroutine type as well.
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <thread>
#include <type_traits>
#include <utility>

#include "rove/call.hpp"
#include "rove/detail/task.hpp"
#include "rove/edge.h"

namespace rove {

// A coroutine that returns a T. It starts when it is awaited, and is awaited once. A Task owns its coroutine: destroying a Task that has
// not ended destroys the coroutine, and nothing resumes it later.
template <typename T = void>
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
        if (!handle_ || handle_.promise().continuation)
            detail::throw_error(ErrorCode::invalid, "this Task was moved from, or was awaited before");
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

// Runs a Task (or anything that can be awaited) to its end in this thread, and returns its result or throws its exception.
template <typename Awaitable>
auto sync_wait(Awaitable&& awaitable) -> decltype(awaitable.await_resume());

// All of several Tasks, or of Tasks and Calls: awaiting it, or get(), gives a std::tuple of the results in their order, with std::monostate
// for void; or throws the first error in their order, after all have ended. The Tasks begin when it is awaited, one after the other, each
// up to the place where it first waits. Temporaries are moved into it, named ones are referred to.
template <typename... Awaitables>
    requires(detail::IsTask<std::remove_cvref_t<Awaitables>>::value || ...)
auto when_all(Awaitables&&... parts) {
    return detail::AllTasks<Awaitables...>(std::forward<Awaitables>(parts)...);
}

// ---- implementation

namespace detail {
// sync_wait serves one node; at this interval it checks whether the task now waits for a call of another node.
inline constexpr std::int64_t kLookNs = 10'000'000;

template <typename T>
Task<T> Promise<T>::get_return_object() {
    return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
    return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}
}  // namespace detail

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
    while (!driver.done.load()) {
        if (void* engine = driver.engine.load())
            rove_drive(
                engine, [](void* of) { return static_cast<detail::Driver*>(of)->done.load() ? 1 : 0; }, &driver,
                detail::kLookNs);
        else
            std::this_thread::yield();
    }
    auto& promise = runner.handle.promise();
    if (promise.error) std::rethrow_exception(promise.error);
    if constexpr (!std::is_void_v<T>) return std::move(*promise.value);
}

template <typename... Awaitables>
auto detail::AllTasks<Awaitables...>::get() {
    return sync_wait(*this);
}

}  // namespace rove
