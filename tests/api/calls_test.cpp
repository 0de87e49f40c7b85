// async, sync, post; what comes back, and what goes wrong.
#include <atomic>
#include <chrono>
#include <cmath>
#include <coroutine>
#include <map>
#include <new>
#include <thread>
#include <utility>

#include "../node/soon.hpp"
#include "nodes.hpp"
#include "wire/frame.hpp"

namespace rove::test {

int add(int a, int b) {
    return a + b;
}
static int internal(int a) {
    return a + 1;
}
namespace {
int unnamed(int a) {
    return a + 2;
}
}  // namespace
int without_throwing(int a) noexcept {
    return -a;
}
std::string join(const std::string& a, std::string b) {  // NOLINT(performance-unnecessary-value-param): to be passed so
    return a + b;
}
template <typename T>
T doubled(T value) {
    return value + value;
}
struct Counter {
    int from = 10;
    static int twice(int n) { return 2 * n; }
    [[nodiscard]] int plus(int n) const { return from + n; }
    int operator()(int n) const { return from * n; }
    Counter count() {
        ++from;
        return *this;
    }
};
struct Words {  // a functor that serialises itself
    std::vector<std::string> words;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(words);
    }
    std::size_t operator()(std::size_t index) const { return words.at(index).size(); }
};
void set_in_table(Here& here, int index, int value) {
    here.object<Table>("table").values.at(static_cast<std::size_t>(index)) = value;
}
std::atomic<int> naps_begun{0};
int nap(int ms) {
    ++naps_begun;
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    return ms;
}
std::atomic<bool> nap_is_over{false};
int nap_until_told() {
    while (!nap_is_over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 1;
}
struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};
int refuse(int kind) {
    if (kind == 0) throw Refusal("no");
    if (kind == 1) throw 7;
    throw Error(ErrorCode::overloaded, "too much");
}

class Api : public OnFabrics {};
ROVE_ON_FABRICS(Api);

TEST_P(Api, FunctionsOfEveryKind) {
    EXPECT_EQ(peer().sync(fn<add>, 1, 2), 3);
    EXPECT_EQ(peer().sync(fn<&add>, 1, 2), 3);
    EXPECT_EQ(peer().sync(fn<internal>, 1), 2);
    EXPECT_EQ(peer().sync(fn<unnamed>, 1), 3);
    EXPECT_EQ(peer().sync(fn<without_throwing>, 5), -5);
    EXPECT_EQ(peer().sync(fn<join>, "a", std::string("b")), "ab");
    EXPECT_EQ(peer().sync(fn<doubled<double>>, 1.5), 3.0);
    EXPECT_EQ(peer().sync(fn<&Counter::twice>, 4), 8);
    EXPECT_EQ(peer().sync(fn<&Counter::plus>, Counter{5}, 4), 9);
    EXPECT_EQ(peer().sync(Counter{3}, 4), 12);
    EXPECT_EQ(peer().sync(Words{{"one", "three"}}, 1), 5U);
}

// A coroutine that lets its exceptions out where it is resumed; it is at its end then.
struct LetsOut {
    struct promise_type {
        LetsOut get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { throw; }
    };
    std::coroutine_handle<promise_type> handle;
};
int answer_late() {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // not before it is waited for
    return 1;
}
LetsOut throw_after(Call<int> call, std::atomic<bool>& resumed) {
    (void)co_await call;
    resumed = true;
    throw std::bad_alloc();
}

TEST_P(Api, ACoroutineThatLetsAnExceptionOutHarmsNoOtherCall) {
    std::atomic<bool> resumed = false;
    const LetsOut thrower = throw_after(peer().async(fn<answer_late>), resumed);
    EXPECT_TRUE(soon([&] { return resumed.load(); }));
    for (int i = 0; i < 100; ++i) EXPECT_EQ(peer().sync([](int x) { return x + 1; }, i), i + 1);
    thrower.handle.destroy();
}

// `const auto&...` would take a Here as well, and count it.
TEST_P(Api, GenericLambdasAreGivenAHereOnlyWhereTheyNeedOne) {
    EXPECT_EQ(peer().sync([](const auto&... all) { return sizeof...(all); }, 1, 2, 3), 3U);
    EXPECT_EQ(peer().sync([](const auto&, const auto&... rest) { return (0 + ... + rest); }, 1, 2, 3), 5);
    EXPECT_EQ(peer().sync([](const auto& x, int by = 2) { return sizeof(x) * static_cast<unsigned>(by); }, 10), 8U);
    EXPECT_EQ(peer().sync([](auto... all) { return (all + ...); }, 1, 2, 3), 6);
    EXPECT_EQ(peer().sync([](auto x, int y = 3) { return x + y; }, 1), 4);
    EXPECT_EQ(peer().sync([](Here& here, auto x) { return x + static_cast<int>(here.node_count() > 0); }, 1), 2);
    EXPECT_EQ(peer().sync([](auto& here, int x) { return x + static_cast<int>(here.node_count() > 0); }, 1), 2);
}

TEST_P(Api, Lambdas) {
    int limit = 3;
    double scale = 0.5;
    EXPECT_EQ(peer().sync([](int x) { return x * x; }, 5), 25);
    EXPECT_EQ(peer().sync([limit, scale](int x) { return (x + limit) * scale; }, 5), 4.0);
    EXPECT_EQ(peer().sync([=](auto x, auto y) { return x + y + limit; }, 5, 1L), 9L);
    EXPECT_EQ(peer().sync([=](Here& here) {
        const auto& values = here.object<Table>("table").values;
        return std::count_if(values.begin(), values.end(), [=](int v) { return v > limit; });
    }),
              4);
    EXPECT_EQ(peer().sync([](Here& here, auto x) { return here.node() + x; }, 5U), server_->id() + 5);
}

// A function that changes a copy can be called if nothing is lost by that.
TEST_P(Api, WhatChangesItsObjectGivesItBack) {
    EXPECT_EQ(peer().sync(fn<&Counter::count>, Counter{5}).from, 6);
    EXPECT_EQ(peer().sync([]() mutable { return 1; }), 1) << "it has captured nothing";
    EXPECT_EQ(peer().sync([calls = 3] {
        int mine = calls;
        return ++mine;
    }),
              4);
}

TEST_P(Api, Bind) {
    const std::string prefix = "pre";
    const std::map<std::string, int> weights{{"a", 1}, {"b", 2}};
    const auto bound = rove::bind([](const std::string& p, const std::map<std::string, int>& w,
                                     const std::string& key) { return p + std::to_string(w.at(key)); },
                                  prefix, weights);
    EXPECT_EQ(peer().sync(bound, "b"), "pre2");
    EXPECT_EQ(peer().sync(rove::bind(fn<add>, 40), 2), 42);
}

TEST_P(Api, NamedAndRunElsewhere) {
    EXPECT_EQ(peer().sync(named<"tests.sum">(fn<add>), 20, 22), 42);
    EXPECT_EQ(peer().sync(on_worker(fn<add>), 20, 22), 42);
    EXPECT_EQ(peer().sync(named<"tests.worker">(on_worker([](int x) { return x; })), 3), 3);
}

TEST_P(Api, PostsRun) {
    peer().post(fn<set_in_table>, 2, 99);
    EXPECT_EQ(peer().sync([](Here& here) { return here.object<const Table>("table").values[2]; }), 99);  // behind it
}

TEST_P(Api, ExceptionsComeBack) {
    try {
        (void)peer().sync(fn<refuse>, 0);
        FAIL();
    } catch (const RemoteError& error) {
        EXPECT_EQ(error.type(), "rove::test::Refusal");
        EXPECT_STREQ(error.what(), "no");
        EXPECT_EQ(error.node(), server_->id());
        EXPECT_EQ(error.code(), ErrorCode::failed);
    }
    try {
        (void)peer().sync(fn<refuse>, 1);
        FAIL();
    } catch (const RemoteError& error) {
        EXPECT_EQ(error.type(), "int");
    }
    const Error thrown = error_of([&] { (void)peer().sync(fn<refuse>, 2); });
    EXPECT_EQ(thrown.code(), ErrorCode::overloaded);
    EXPECT_EQ(thrown.message(), "too much");
    const Error wordy = error_of([&] {
        peer().sync([](std::size_t letters) { throw std::runtime_error(std::string(letters, 'w')); }, 100'000);
    });
    EXPECT_EQ(wordy.message(), std::string(wire::kErrorBytesMax - sizeof "std::runtime_error", 'w'));
    EXPECT_EQ(peer().sync(fn<add>, 1, 1), 2);
}

TEST_P(Api, ObjectsAreFoundByNameAndType) {
    const Error none =
        error_of([&] { (void)peer().sync([](Here& here) { return here.object<Table>("tabel").values[0]; }); });
    EXPECT_EQ(none.code(), ErrorCode::invalid);
    EXPECT_NE(none.message().find("no object 'tabel'"), std::string::npos) << none.message();
    EXPECT_NE(none.message().find("table"), std::string::npos) << none.message();
    const Error cut = error_of([&] {
        (void)peer().sync([](Here& here) { return here.object<Table>(std::string_view("table\0s", 7)).values[0]; });
    });
    EXPECT_NE(cut.message().find("has no zero character"), std::string::npos) << cut.message();
    const Error other = error_of([&] { (void)peer().sync([](Here& here) { return here.object<int>("table"); }); });
    EXPECT_NE(other.message().find("another type"), std::string::npos) << other.message();
    // The request of a program that was built when the type had another member.
    using Before = detail::Shared<Table, sizeof(Table) + 8, alignof(Table)>;
    const Error before = error_of([&] {
        (void)peer().sync([](Here& here) {
            if (rove_object(here.raw(), "table", typeid(Before).name()) != nullptr) return;
            throw Error(ErrorCode::invalid, rove_last_failure()->message);
        });
    });
    EXPECT_NE(before.message().find("Table, 24, 8) and not (rove::test::Table, 32, 8)"), std::string::npos)
        << before.message();
    EXPECT_EQ(error_of([&] { server_->share("table", table_); }).code(), ErrorCode::invalid);
    server_->unshare("table");
    server_->share("table", table_);
}

TEST_P(Api, WaitForAndDone) {
    Call<int> slow = peer().async(fn<nap>, 500);
    EXPECT_FALSE(slow.wait_for(std::chrono::milliseconds(5)));
    EXPECT_TRUE(slow.wait_for(std::chrono::seconds(20)));
    EXPECT_TRUE(slow.done());
    EXPECT_EQ(slow.get(), 500);
    EXPECT_EQ(error_of([&] { (void)slow.get(); }).code(), ErrorCode::invalid);
}

TEST_P(Api, ADroppedCallDoesNotBlock) {
    nap_is_over = false;
    {
        const Call<int> dropped = peer().async(fn<nap_until_told>);
    }
    nap_is_over = true;  // not reached, if it did
    EXPECT_EQ(peer().sync(fn<add>, 1, 1), 2);
}

TEST_P(Api, Cancel) {
    Call<int> slow = peer().async(fn<nap>, 500);
    slow.cancel();
    EXPECT_TRUE(slow.done());
    EXPECT_EQ(error_of([&] { (void)slow.get(); }).code(), ErrorCode::cancelled);
    // The slot is used again, and the late reply is not taken for its new call's.
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(peer().sync(fn<add>, i, 1), i + 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    Call<int> ended = peer().async(fn<add>, 1, 2);
    (void)ended.wait_for(std::chrono::seconds(20));
    ended.cancel();  // too late, and no harm
    EXPECT_EQ(ended.get(), 3);
}

TEST_P(Api, Deadlines) {
    using namespace std::chrono_literals;
    EXPECT_EQ(peer().async(within(20s), fn<add>, 1, 2).get(), 3);
    nap_is_over = false;
    // async() throws where it was too late to send the call: on a busy machine some do.
    const Error error = error_of([&] { (void)peer().async(within(5ms), fn<nap_until_told>).get(); });
    EXPECT_EQ(error.code(), ErrorCode::timed_out);
    EXPECT_NE(std::string(error.what()).find(server_->address()), std::string::npos) << error.what();
    // Several, which end in the order of their times.
    Call<int> second = peer().async(within(1s), fn<nap_until_told>);
    Call<int> first = peer().async(within(400ms), fn<nap_until_told>);
    EXPECT_EQ(when_any(second, first).get(), 1U);
    EXPECT_EQ(error_of([&] { (void)second.get(); }).code(), ErrorCode::timed_out);
    nap_is_over = true;  // not reached, if a call waited for its function's end
}

TEST_P(Api, WhenAllAndAny) {
    Call<int> a = peer().async(fn<add>, 1, 2);
    auto [x, y, none] = when_all(a, peer().async(fn<join>, "x", "y"), peer().async(fn<set_in_table>, 0, 1)).get();
    EXPECT_EQ(x, 3);
    EXPECT_EQ(y, "xy");
    static_assert(std::is_same_v<decltype(none), std::monostate>);
    std::vector<Call<int>> many;
    for (int i = 0; i < 100; ++i) many.push_back(peer().async(fn<add>, i, i));
    const std::vector<int> results = when_all(std::move(many)).get();
    ASSERT_EQ(results.size(), 100U);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)], 2 * i);
    std::vector<Call<int>> race;
    race.push_back(peer().async(fn<nap>, 300));
    race.push_back(peer().async(fn<add>, 1, 1));
    EXPECT_EQ(when_any(std::as_const(race)).get(), 1U);
    const std::vector<Call<int>> slow = [&] {
        std::vector<Call<int>> calls;
        for (int i = 0; i < 2; ++i) calls.push_back(peer().async(fn<nap>, 300));
        return calls;
    }();
    const Call<int> fast = peer().async(fn<add>, 1, 2);
    EXPECT_EQ(when_any(slow, fast, slow).get(), 2U) << "in their order";
    const std::vector<Call<int>> no_calls;
    EXPECT_EQ(error_of([&] { (void)when_any(no_calls).get(); }).code(), ErrorCode::invalid);
    Call<int> quick = peer().async(fn<add>, 1, 3);
    auto first_of_two = when_any(slow, quick);
    (void)quick.get();
    const Error taken = error_of([&] { (void)first_of_two.get(); });
    EXPECT_EQ(taken.code(), ErrorCode::invalid);
    EXPECT_NE(taken.message().find("was taken already"), std::string::npos) << taken.message();
}

TEST_P(Api, Then) {
    std::atomic<int> value{0};
    peer().async(fn<add>, 20, 22).then([&value](Call<int> ended) { value = ended.get(); });
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (value == 0 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_EQ(value, 42);
    std::atomic<ErrorCode> code{ErrorCode::ok};
    Call<int> refused = peer().async(fn<refuse>, 2);
    (void)refused.wait_for(std::chrono::seconds(20));  // ended already: called at once
    refused.then([&code](Call<int> ended) { code = error_of([&] { (void)ended.get(); }).code(); });
    EXPECT_EQ(code, ErrorCode::overloaded);
}

Task<int> sum_of_squares(Peer peer, int count) {
    int sum = 0;
    for (int i = 0; i < count; ++i) sum += co_await peer.async([](int x) { return x * x; }, i);
    co_return sum;
}
Task<std::string> nested(Peer peer) {
    const int sum = co_await sum_of_squares(peer, 10);
    auto [a, b] = co_await when_all(peer.async(fn<add>, sum, 1), peer.async(fn<join>, "a", "b"));
    co_return std::to_string(a) + b;
}
Task<> failing(Peer peer) {
    (void)co_await peer.async(fn<refuse>, 0);
}
Task<std::size_t> racing(Peer peer) {
    Call<int> slow = peer.async(fn<nap>, 200);
    Call<int> fast = peer.async(fn<add>, 1, 2);
    co_return co_await when_any(slow, fast);
}

Task<std::size_t> close_race(Peer peer) {  // some end while they are being asked
    Call<int> a = peer.async(fn<add>, 1, 2), b = peer.async(fn<add>, 3, 4), c = peer.async(fn<add>, 5, 6);
    const std::size_t index = co_await when_any(a, b, c);
    co_await when_all(a, b, c);
    co_return index;
}

TEST_P(Api, Coroutines) {
    EXPECT_EQ(sync_wait(sum_of_squares(peer(), 100)), 328350);
    EXPECT_EQ(sync_wait(nested(peer())), "286ab");
    EXPECT_THROW(sync_wait(failing(peer())), RemoteError);
    EXPECT_EQ(sync_wait(racing(peer())), 1U);
    for (int i = 0; i < 300; ++i) EXPECT_LT(sync_wait(close_race(peer())), 3U);
    EXPECT_EQ(sync_wait(peer().async(fn<add>, 1, 2)), 3);  // without a Task
}

TEST_P(Api, GroupsOfPeers) {
    Node second(started(options(true)));
    const PeerGroup group = node_->connect({server_->address(), second.address()});
    ASSERT_EQ(group.size(), 2U);
    EXPECT_EQ(group[0].address(), server_->address());
    EXPECT_EQ(error_of([&] { (void)group[2]; }).code(), ErrorCode::invalid);
    EXPECT_EQ(group.broadcast(fn<add>, 1, 2).get(), (std::vector<int>{3, 3}));
    EXPECT_EQ(group.reduce(fn<add>, std::plus<>(), 1, 2).get(), 6);
    EXPECT_EQ(sync_wait(group.reduce([](int x) { return x; }, [](int a, int b) { return 10 * a + b; }, 4)), 44);
    group.broadcast([](Here& here) { return here.node(); }).get();
    EXPECT_THROW(group.broadcast(fn<refuse>, 0).get(), RemoteError);
    EXPECT_EQ(error_of([] { (void)PeerGroup().reduce(fn<add>, std::plus<>(), 1, 2); }).code(), ErrorCode::invalid);
    std::vector<std::string> addresses{second.address()};
    EXPECT_EQ(node_->connect(addresses).size(), 1U);
}

TEST_P(Api, WithoutThreadsOfItsOwn) {
    NodeOptions single = options();
    single.own_thread = false;
    Node node(started(single));
    const Peer peer = node.connect(server_->address());
    EXPECT_EQ(peer.sync(fn<add>, 1, 2), 3);
    EXPECT_EQ(sync_wait(nested(peer)), "286ab");
    EXPECT_EQ(error_of([&] { (void)peer.async(within(std::chrono::milliseconds(5)), fn<nap>, 1000).get(); }).code(),
              ErrorCode::timed_out);
}

TEST_P(Api, ManyThreadsCallAtOnce) {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 500; ++i) wrong += peer().sync(fn<add>, t, i) == t + i ? 0 : 1;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST_P(Api, ANodeThatGoesFailsItsCalls) {
    const int before = naps_begun;
    Call<int> slow = peer().async(fn<nap>, 100);
    while (naps_begun == before) std::this_thread::yield();
    server_.reset();  // finishes what runs
    try {
        EXPECT_EQ(slow.get(), 100);
    } catch (const Error& error) {
        // What chaos carries late may come after the goodbye.
        if (!GetParam().is_chaos() || error.code() != ErrorCode::disconnected) throw;
    }
    EXPECT_EQ(error_of([&] { (void)peer().sync(fn<add>, 1, 2); }).code(), ErrorCode::disconnected);
}

TEST_P(Api, FunctionsAreListed) {
    const auto has = [](const std::vector<FunctionDescription>& list) {
        return std::any_of(list.begin(), list.end(), [](const FunctionDescription& each) {
            return each.name == "rove::test::add" && each.signature == "int (int, int)" && each.id.size() == 32;
        });
    };
    EXPECT_TRUE(has(peer().functions()));
    EXPECT_TRUE(has(Node::functions()));
    EXPECT_EQ(peer().description().node, server_->id());
    EXPECT_EQ(peer().description().address, server_->address());
}

// What a caller says of its schema is compared before anything runs.
TEST_P(Api, IdsAreMadeOfNamesAndTypes) {
    std::map<std::string, std::string> names;
    for (const FunctionDescription& each : Node::functions())
        EXPECT_TRUE(names.emplace(each.id, each.name).second) << each.name;
}

}  // namespace rove::test
