// Things that a newcomer tries at once, and the messages for those that are not possible.
#include <ucontext.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "nodes.hpp"
#include "peer/names.hpp"

namespace rove::test {

using namespace std::chrono_literals;

class Edges : public OnFabrics {};
ROVE_ON_FABRICS(Edges);

int twice(int x) {
    return 2 * x;
}
Task<int> twice_there(Peer peer, int x) {
    co_return co_await peer.async(fn<twice>, x);
}
Task<> nothing_there(Peer peer) {
    co_await peer.async([] {});
}
Task<int> fails_there(Peer peer) {
    co_return co_await peer.async([]() -> int { throw std::out_of_range("no such thing"); });
}

TEST_P(Edges, SyncTakesALimit) {
    EXPECT_EQ(peer().sync(within(60s), fn<twice>, 21), 42);
    const Error error = error_of([&] {
        (void)peer().sync(within(20ms), [] {
            std::this_thread::sleep_for(300ms);
            return 1;
        });
    });
    EXPECT_EQ(error.code(), ErrorCode::timed_out);
}

TEST_P(Edges, AllocationsCallBackLikeOtherCalls) {
    std::atomic<int> size{-1};
    peer().allocate<double>(7).then([&](Call<Buffer<double>> ended) { size = static_cast<int>(ended.get().size()); });
    for (int i = 0; i < 2000 && size < 0; ++i) std::this_thread::sleep_for(5ms);
    EXPECT_EQ(size, 7);
}

TEST_P(Edges, TasksAreWaitedForTogether) {
    const auto [a, b, nothing] = when_all(twice_there(peer(), 1), twice_there(peer(), 2), nothing_there(peer())).get();
    EXPECT_EQ(a, 2);
    EXPECT_EQ(b, 4);
    (void)nothing;
    Task<int> kept = twice_there(peer(), 3);
    const auto sum = [](Peer to, Task<int>& first) -> Task<int> {
        auto [x, y] = co_await when_all(first, to.async(fn<twice>, 4));
        co_return x + y;
    };
    EXPECT_EQ(sync_wait(sum(peer(), kept)), 14);
}

TEST_P(Edges, TheFirstErrorOfSeveralTasksIsThrownWhenAllHaveEnded) {
    EXPECT_THROW((void)when_all(twice_there(peer(), 1), fails_there(peer()), nothing_there(peer())).get(), RemoteError);
}

TEST_P(Edges, ACallbackThatThrowsIsWrittenToTheLogAndEndsNothing) {
    testing::internal::CaptureStderr();
    std::atomic<int> ran{0};
    call_back(peer(), [&] {
        ++ran;
        throw std::runtime_error("thrown by a callback");
    });
    for (int i = 0; i < 2000 && ran == 0; ++i) std::this_thread::sleep_for(5ms);
    Call<int> ended = peer().async(fn<twice>, 2);
    while (!ended.wait_for(1s)) {
    }
    std::move(ended).then([&](Call<int>) {  // in this thread
        ++ran;
        throw 7;
    });
    EXPECT_EQ(ran, 2);
    EXPECT_EQ(peer().sync(fn<twice>, 4), 8);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("a callback given to then() let std::runtime_error out: thrown by a callback"),
              std::string::npos)
        << said;
    EXPECT_NE(said.find("a callback given to then() let int out"), std::string::npos) << said;
}

// Each of them would be within the one before.
TEST_P(Edges, CallbacksOfCallsThatHaveEndedMayBeAnyNumberInAChain) {
    struct Chain {
        int left = 500'000;
        int within = 0, deepest = 0;
        void go_on() {
            if (left-- == 0) return;
            Call<void>().then([this](Call<void>) {
                deepest = std::max(deepest, ++within);
                go_on();
                --within;
            });
        }
    } chain;
    chain.go_on();
    EXPECT_EQ(chain.left, -1);
    EXPECT_GT(chain.deepest, 100) << "as long as there is stack for it";
    EXPECT_LT(chain.deepest, 200'000);
}

// Runs that on a stack of its own.
void on_a_fiber(std::size_t stack_bytes, const std::function<void()>& code) {
    static const std::function<void()>* running;
    running = &code;
    std::vector<char> stack(stack_bytes);
    ucontext_t here{}, fiber{};
    getcontext(&fiber);
    fiber.uc_stack = {.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
    fiber.uc_link = &here;
    makecontext(&fiber, [] { (*running)(); }, 0);
    swapcontext(&here, &fiber);
}

// How much of it is left nobody knows.
TEST_P(Edges, CallbacksOfCallsThatHaveEndedMayBeAnyNumberOnAFiber) {
    struct Chain {
        int left = 10'000;
        void go_on() {
            if (left-- > 0) Call<void>().then([this](Call<void>) { go_on(); });
        }
    } chain;
    on_a_fiber(64UL * 1024, [&chain] { chain.go_on(); });
    EXPECT_EQ(chain.left, -1);
}

// What was asked for within a callback that left by an exception may refer to objects that are gone.
TEST_P(Edges, CallbacksThatAnotherLeftBehindAreNotRun) {
    struct Deep {
        int levels = 40, ran = 0;
        static void count(void* of) { ++static_cast<Deep*>(of)->ran; }
        static void go(void* of) {
            if (static_cast<Deep*>(of)->levels-- > 0) return rove_call_back(&go, of);
            rove_call_back(&count, of);  // later, because it is deep
            throw 7;
        }
    } deep;
    on_a_fiber(256UL * 1024, [&deep] {  // where the depth alone counts
        try {
            rove_call_back(&Deep::go, &deep);
        } catch (int) {
        }
        rove_call_back(&Deep::count, &deep);
    });
    EXPECT_EQ(deep.ran, 1);
}

TEST_P(Edges, FunctionsAllocateOnOtherNodes) {
    NodeOptions joins = options(true);
    joins.join = server_->address();
    Node second(started(joins));
    const int sum = peer().sync(
        [](Here& here, unsigned to) {
            Buffer<int> there = here.peer(to).allocate<int>(3).get();
            return here.peer(to).sync(
                [](std::span<int> numbers) {
                    std::iota(numbers.begin(), numbers.end(), 1);
                    return std::accumulate(numbers.begin(), numbers.end(), 0);
                },
                there);
        },
        second.id());
    EXPECT_EQ(sum, 6);
}

TEST_P(Edges, ALargeResultSaysBothSizesBeforeItIsWritten) {
    const Error error =
        error_of([&] { (void)peer().sync([](std::size_t n) { return std::string(n, 'x'); }, 40'000'000UL); });
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_NE(error.message().find("40000008"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find(std::to_string(ROVE_MESSAGE_BYTES_MAX)), std::string::npos) << error.message();
    const Error argument = error_of(
        [&] { (void)peer().sync([](const std::string& s) { return s.size(); }, std::string(40'000'000, 'x')); });
    EXPECT_EQ(argument.code(), ErrorCode::invalid);
    EXPECT_NE(argument.message().find("40000008"), std::string::npos) << argument.message();
    EXPECT_NE(argument.message().find(std::to_string(ROVE_MESSAGE_BYTES_MAX)), std::string::npos) << argument.message();
}

TEST_P(Edges, AddressesAreTheCallersToKeep) {
    static_assert(std::is_same_v<decltype(std::declval<const Peer&>().address()), std::string>);
    EXPECT_EQ(peer().address(), server_->address());
    EXPECT_EQ(peer().description().address, server_->address());
}

// ---- options

Error refused_with(const NodeOptions& options) {
    (void)scratch();
    return error_of([&] { const Node node(options); });
}

TEST(Options, OutsideTheirChoicesAreInvalidAndTheMessageNamesThose) {
    const auto expect = [](const NodeOptions& options, std::initializer_list<std::string_view> words) {
        const Error error = refused_with(options);
        EXPECT_EQ(error.code(), ErrorCode::invalid) << error.message();
        for (const std::string_view word : words)
            EXPECT_NE(error.message().find(word), std::string::npos) << error.message() << " lacks " << word;
    };
    expect({.threads = 0}, {"threads", "0", "1 to 64"});
    expect({.threads = 65}, {"threads", "65", "1 to 64"});
    expect({.log = "loud"}, {"log", "'loud'", "trace", "debug", "info", "warn", "error", "off"});
    expect({.log = ""}, {"log", "warn"});
    expect({.waiting = static_cast<Waiting>(9)}, {"waiting", "9", "latency", "balanced", "frugal"});
    for (const unsigned number : {0U, 4U})
        expect({.forms = static_cast<Forms>(number)}, {"forms", std::to_string(number), "both", "image", "bitcode"});
    expect({.packages_max = 0}, {"packages_max"});
    expect({.connect_timeout = std::chrono::milliseconds(0)}, {"connect_timeout", "0 ms"});
    expect({.connect_timeout = std::chrono::milliseconds(-5)}, {"connect_timeout", "-5 ms"});
    expect({.grace = std::chrono::milliseconds(-1)}, {"grace", "-1 ms"});
    expect({.join = "127.0.0.1:1"}, {"127.0.0.1:1", "listen"});
}

// ---- errors

TEST(Errors, AreNeverOk) {
    for (const unsigned number : {0U, 10U, 77U, 255U}) {
        const Error told = Error::reported(static_cast<ErrorCode>(number), "from a peer", 3, "");
        EXPECT_EQ(told.code(), ErrorCode::internal) << number;
        EXPECT_EQ(told.message(), "from a peer");
    }
    for (unsigned number = 1; number <= 9; ++number)
        EXPECT_EQ(static_cast<unsigned>(Error(static_cast<ErrorCode>(number), "").code()), number);
}

TEST(Errors, NameANodeByItsAddress) {
    EXPECT_EQ(who(0, "127.0.0.1:7401"), "node 0 at 127.0.0.1:7401");
    EXPECT_EQ(who(3, ""), "node 3");
    EXPECT_EQ(who(0x8000'002AU, ""), "client 42");
}

}  // namespace rove::test
