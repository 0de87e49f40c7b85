// Coroutines and callbacks that are gone when the calls end that they waited for. The nodes have no thread of their own, so that a
// call's end is seen when the test says so.
#include "nodes.hpp"
#include "rove/task.hpp"

namespace rove::test {
namespace {

// A coroutine that its owner destroys while it waits, and whose frame stays readable: resuming it then counts, and does not crash.
struct Owned {
    struct promise_type {
        Owned get_return_object() { return Owned(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept {}
    };
    explicit Owned(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    ~Owned() { destroy(); }
    void destroy() {
        if (handle_) std::exchange(handle_, nullptr).destroy();
    }

private:
    std::coroutine_handle<promise_type> handle_;
};

class Destroyed : public testing::Test {
protected:
    // A server that never answers: nobody drives it.
    static NodeOptions options(bool listens) {
        (void)scratch();
        NodeOptions options;
        options.log = "error";
        options.own_thread = false;
        if (listens) options.listen = "127.0.0.1:0";
        return options;
    }
    [[nodiscard]] Call<int> call() {
        return peer_.async([] { return 1; });
    }
    void expect_not_resumed() {
        for (int i = 0; i < 10; ++i) node_.poll(std::chrono::milliseconds(0));
        EXPECT_EQ(resumed_, 0);
    }

    Node server_{options(true)};
    Node node_{options(false)};
    Peer peer_ = node_.connect(server_.address());
    int resumed_ = 0;
};

TEST_F(Destroyed, ACallThatIsDroppedBetweenItsEndAndItsCallbackCallsNobody) {
    Call<int> dropped = call();
    EXPECT_EQ(rove_pending_notify(
                  detail::Access::pending(dropped), [](void* count) { ++*static_cast<int*>(count); }, &resumed_),
              1);
    dropped.cancel();  // its end is queued
    {
        const Call<int> last = std::move(dropped);
    }
    expect_not_resumed();
}

TEST_F(Destroyed, WhatIsTakenBackBetweenTheEndAndTheCallbackIsNotCalled) {
    Call<int> kept = call();
    EXPECT_EQ(rove_pending_notify(
                  detail::Access::pending(kept), [](void* count) { ++*static_cast<int*>(count); }, &resumed_),
              1);
    kept.cancel();
    EXPECT_EQ(rove_pending_notify(detail::Access::pending(kept), nullptr, nullptr), 1);
    EXPECT_EQ(rove_pending_notify(detail::Access::pending(kept), nullptr, nullptr), 0) << "once";
    expect_not_resumed();
}

TEST_F(Destroyed, ACallbackIsCalledOnceAfterTheCallWasCancelled) {
    Call<int> kept = call();
    EXPECT_EQ(rove_pending_notify(
                  detail::Access::pending(kept), [](void* count) { ++*static_cast<int*>(count); }, &resumed_),
              1);
    kept.cancel();
    for (int i = 0; i < 10; ++i) node_.poll(std::chrono::milliseconds(0));
    EXPECT_EQ(resumed_, 1);
}

// The calls stay and end; the coroutine that waited for them is gone. With the address sanitizer to see what is read then.
TEST_F(Destroyed, ACoroutineThatIsDestroyedWhileItWaitsForACallIsNotResumed) {
    Call<int> kept = call();
    Owned waits = [](Call<int>& on, int& resumed) -> Owned {
        try {
            (void)co_await on;
        } catch (const Error&) {
        }
        ++resumed;
    }(kept, resumed_);
    waits.destroy();
    EXPECT_EQ(rove_pending_notify(detail::Access::pending(kept), nullptr, nullptr), 0)
        << "the call would resume a coroutine that is gone";
    kept.cancel();
    expect_not_resumed();
}

TEST_F(Destroyed, NorIsOneThatWaitsForSeveral) {
    Call<int> a = call(), b = call();
    Owned all = [](Call<int>& x, Call<int>& y, int& resumed) -> Owned {
        try {
            (void)co_await when_all(x, y);
        } catch (const Error&) {
        }
        ++resumed;
    }(a, b, resumed_);
    all.destroy();
    EXPECT_EQ(rove_pending_notify(detail::Access::pending(a), nullptr, nullptr), 0);
    EXPECT_EQ(rove_pending_notify(detail::Access::pending(b), nullptr, nullptr), 0);
    a.cancel();
    b.cancel();
    expect_not_resumed();
}

TEST_F(Destroyed, NorIsOneThatWaitsForTheFirstOfSeveral) {
    Call<int> a = call(), b = call();
    Owned any = [](Call<int>& x, Call<int>& y, int& resumed) -> Owned {
        (void)co_await when_any(x, y);
        ++resumed;
    }(a, b, resumed_);
    any.destroy();
    EXPECT_EQ(rove_pending_notify(detail::Access::pending(a), nullptr, nullptr), 0);
    a.cancel();
    expect_not_resumed();
}

TEST_F(Destroyed, ACallbackMayDestroyACoroutineWhoseCallHasEndedAsWell) {
    struct Both {
        std::optional<Owned> other;
        Call<int> first, second;
    } both{std::nullopt, call(), call()};
    both.other.emplace([](Call<int>& on, int& resumed) -> Owned {
        try {
            (void)co_await on;
        } catch (const Error&) {
        }
        ++resumed;
    }(both.second, resumed_));
    EXPECT_EQ(rove_pending_notify(
                  detail::Access::pending(both.first), [](void* of) { static_cast<Both*>(of)->other.reset(); }, &both),
              1);
    both.first.cancel();
    both.second.cancel();  // both ends are queued, this one's last
    expect_not_resumed();
}

}  // namespace
}  // namespace rove::test
