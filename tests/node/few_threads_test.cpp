// A machine that gives no more threads: each creation of one may be refused.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <limits>

#include "../api/nodes.hpp"
#include "one_engine.hpp"

namespace rove::test {
namespace {
constexpr int kAny = std::numeric_limits<int>::max();
std::atomic<int> threads_left{kAny};
}  // namespace
}  // namespace rove::test

// In place of libc's, for all of this program.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                              void* argument) {
    static const auto libcs = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
    if (rove::test::threads_left != rove::test::kAny && rove::test::threads_left-- <= 0) return EAGAIN;
    return libcs(thread, attributes, run, argument);
}

namespace rove::test {
namespace {

using namespace std::chrono_literals;

int add(int a, int b) {
    return a + b;
}

class FewThreads : public OnFabrics {
    void SetUp() override {}
    void TearDown() override { threads_left = kAny; }
};

// They look at the node's engine, or count its places.
class FewThreadsOfOneEngine : public FewThreads {};
ROVE_ON_THESE_FABRICS(FewThreadsOfOneEngine, kFabricsWithOneEngine);

TEST_P(FewThreadsOfOneEngine, ANodeThatGetsTooFewSaysSoAtOnce) {
    bool made = false;
    int refused = 0, limit_named = 0;
    for (int few = 0; few < 20 && !made; ++few) {
        threads_left = few;
        const auto begun = std::chrono::steady_clock::now();
        try {
            Node node(started(options(true)));
            made = true;
        } catch (const Error& error) {
            ++refused;
            EXPECT_EQ(error.code(), ErrorCode::overloaded) << few << ": " << error.message();
            limit_named += error.message().find("is there a limit of processes or of memory?") != std::string::npos;
        }
        EXPECT_LT(std::chrono::steady_clock::now() - begun, 4s) << "it waited for threads that it does not have";
    }
    EXPECT_TRUE(made);
    EXPECT_GE(refused, 6) << "four threads, two that serve, one that stands by";
    EXPECT_GT(limit_named, 0) << "a thread's stack needs memory, too";
    threads_left = kAny;
    Node server(started(options(true)));
    Node node(started(options()));
    EXPECT_EQ(node.connect(server.address()).sync(fn<add>, 1, 2), 3);
}

}  // namespace
}  // namespace rove::test
