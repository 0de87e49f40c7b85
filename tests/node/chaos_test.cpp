// The promises of calls that hold over links which deliver frames in pieces and late, and are cut within frames, by seed (../seed.hpp): with
// threads each run of a seed differs a little. The tests on each fabric check the promises over links that are not cut.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "../seed.hpp"
#include "api/access.hpp"
#include "engine/here.hpp"
#include "fabrics.hpp"
#include "process.hpp"
#include "rove/rove.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kThreads = 4, kCallsPerThread = 120, kCalls = kThreads * kCallsPerThread;

std::array<std::atomic<int>, kCalls> runs;
std::vector<char> run_numbered(std::uint32_t number, const std::vector<char>& bytes, std::uint32_t result_bytes) {
    ++runs[number];
    return std::vector<char>(result_bytes, static_cast<char>(bytes.size()));
}
// Its frames take 126 lines, so that a link gives credit for some of them before it is cut: replies that no credit was given for are sent
// again at the next meeting, and a link that is always cut before it has given any would carry the same ones for ever.
struct Numbered {
    std::uint32_t number = 0, to = 0;
    std::array<char, 8000> rest{};
};
// On its way to another node, by its own id, as rove_forward does.
Numbered run_at(Here& here, const Numbered& call) {
    if (here.node() == call.to)
        ++runs[call.number];
    else if (rove_forward(here.raw(), call.to, &call, sizeof call) != ROVE_OK)
        throw std::runtime_error("it is not sent on");
    return call;
}

NodeOptions options(const std::string& join = {}) {
    (void)scratch();
    return {.listen = "127.0.0.1:0", .join = join, .log = "off", .connect_timeout = 20s};
}

class ChaosThatCuts : public testing::Test {
protected:
    void SetUp() override {
        for (auto& each : runs) each = 0;
    }
    // From several threads: each call with its number and random numbers of its thread's own. It may fail as `may_fail` says.
    void call_all(const std::function<void(std::uint32_t number, std::mt19937_64& random)>& call,
                  const std::function<bool(const Error&)>& may_fail) {
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < kThreads; ++t)
            threads.emplace_back([&, t] {
                std::mt19937_64 random(seed() + t);
                for (std::uint32_t i = 0; i < kCallsPerThread; ++i) {
                    const std::uint32_t number = t * kCallsPerThread + i;
                    try {
                        call(number, random);
                        ++answered_;
                        EXPECT_EQ(runs[number], 1) << "call " << number << " was answered";
                    } catch (const Error& error) {
                        EXPECT_TRUE(may_fail(error)) << "call " << number << ": " << error.what();
                        EXPECT_LE(runs[number], 1) << "call " << number;
                    }
                }
            });
        for (std::thread& thread : threads) thread.join();
    }
    // At the nodes' end nothing is on its way any more.
    void TearDown() override {
        for (std::uint32_t number = 0; number < kCalls; ++number) EXPECT_LE(runs[number], 1) << "call " << number;
        RecordProperty("answered", static_cast<int>(answered_));
    }
    std::atomic<unsigned> answered_{0};
};

bool is_disconnected(const Error& error) {
    return error.code() == ErrorCode::disconnected;
}

std::uint32_t bytes_of_any_size(std::mt19937_64& random) {
    const std::uint64_t size = random() % 10;
    if (size == 0) return static_cast<std::uint32_t>(random() % 1'000'000);  // in parts
    return static_cast<std::uint32_t>(random() % (size < 4 ? 60'000 : 200));
}

TEST_F(ChaosThatCuts, ACallRunsOnceOrEndsAsDisconnected) {
    Node server(kChaosThatCuts.start(options()));
    NodeOptions calls = options();
    calls.listen.clear();
    Node client(kChaosThatCuts.start(calls));
    const Peer peer = client.connect(server.address());
    const auto state = detail::Inside::state(peer);
    const std::uint64_t first = state->meeting();
    call_all(
        [&](std::uint32_t number, std::mt19937_64& random) {
            const std::vector<char> bytes(bytes_of_any_size(random));
            const std::uint32_t result_bytes = bytes_of_any_size(random);
            const std::vector<char> result = peer.sync(within(60s), fn<run_numbered>, number, bytes, result_bytes);
            EXPECT_EQ(result, std::vector<char>(result_bytes, static_cast<char>(bytes.size())));
        },
        is_disconnected);
    EXPECT_NE(state->meeting(), first) << "nothing was cut";  // 0: just now
    EXPECT_GT(answered_, 0U);
}

// Of three nodes: its answer goes to its caller's node, when the two are linked again.
TEST_F(ChaosThatCuts, ACallThatIsSentOnRunsOnceOrEndsAsDisconnected) {
    Node first(kChaosThatCuts.start(options()));
    Node second(kChaosThatCuts.start(options(first.address())));
    Node third(kChaosThatCuts.start(options(first.address())));
    const Peer to_second = first.connect(second.address());
    const NodeId to = third.id();
    call_all(
        [&](std::uint32_t number, std::mt19937_64&) {
            EXPECT_EQ(to_second.sync(within(60s), fn<run_at>, Numbered{number, to, {}}).number, number);
        },
        [](const Error& error) {
            return is_disconnected(error) || std::string_view(error.what()).find("not sent on") != std::string::npos;
        });
    EXPECT_GT(answered_, 0U);
}

}  // namespace
}  // namespace rove::test
