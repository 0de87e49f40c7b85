// A machine that has no thread or no memory left: each piece of work is refused, and none waits for ever or ends the process.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>

#include "bitcode/compiler.hpp"
#include "cache_fixture.hpp"
#include "cache_parts.hpp"
#include "code/loader.hpp"
#include "code/workers.hpp"

namespace {

std::atomic<int> threads_left{-1};  // -1: as many as anybody wants

}  // namespace

// In place of the C library's, for the whole process.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                              void* argument) noexcept {
    for (int left = threads_left; left >= 0;) {
        if (left == 0) return EAGAIN;
        if (threads_left.compare_exchange_weak(left, left - 1)) break;
    }
    static auto* const real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
    return real(thread, attributes, run, argument);
}

namespace rove::code {
namespace {

using namespace std::chrono_literals;

class NoThreadTest : public CacheTest {
protected:
    void TearDown() override { threads_left = -1; }
    // Enters it until it can be entered or not.
    static std::optional<Error> outcome(CodeCache& cache, Function& function) {
        for (const auto until = std::chrono::steady_clock::now() + 30s; std::chrono::steady_clock::now() < until;) {
            const auto entered = cache.enter(function);
            if (const auto* error = std::get_if<Error>(&entered)) return *error;
            if (std::holds_alternative<Entered>(entered)) return std::nullopt;
            std::this_thread::yield();
        }
        return Error(ErrorCode::timed_out, "it still waits");
    }
    static void expect_no_thread(const std::optional<Error>& error) {
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), ErrorCode::overloaded) << error->message();
        EXPECT_NE(error->message().find("no thread"), std::string::npos) << error->message();
    }
};

constexpr const char* kLarge =
    "long t[16384] = {0, 1}; ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = t[n] + 7; "
    "(void)h; }";

TEST_F(NoThreadTest, WhatNeedsAWorkerIsRefusedAndRunsLater) {
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        CodeCache cache(options(form == Forms::image ? Forms::image : Forms::bitcode));
        const auto large = arriving(*build("large.c", kLarge), {form});
        ASSERT_TRUE(cache.add(large, false));
        Function* go = cache.find("large:go");
        threads_left = 0;
        expect_no_thread(outcome(cache, *go));
        const Status loaded = cache.load(large);
        ASSERT_FALSE(loaded);
        expect_no_thread(loaded.error());
        const Status later = cache.load_later(large, [](const auto&) {});
        ASSERT_FALSE(later);
        expect_no_thread(later.error());
        threads_left = -1;
        EXPECT_EQ(call(cache, *go), 7);
    }
}

TEST_F(NoThreadTest, AnImageRunsWhereItsBitcodeHasNoThread) {
    CodeCache cache(options());
    ASSERT_TRUE(cache.add(build("counter.c", kCounter), false));
    threads_left = 0;
    EXPECT_EQ(call(cache, *cache.find("counter:count")), 41);
}

// The worker is there, and LLVM's thread is not.
TEST_F(NoThreadTest, WhatLlvmHasNoThreadForIsRefusedAndRunsLater) {
    ASSERT_TRUE(bitcode::compiler());
    CodeCache cache(options(Forms::bitcode));
    ASSERT_TRUE(cache.add(arriving(*build("counter.c", kCounter), {Forms::bitcode}), false));
    threads_left = 1;
    cache.warm_up();
    Function* count = cache.find("counter:count");
    expect_no_thread(outcome(cache, *count));
    threads_left = -1;
    EXPECT_EQ(call(cache, *count), 41);
}

TEST_F(NoThreadTest, ConstructorsWithoutAThreadAreRefusedAndRunLater) {
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        CodeCache cache(options(form == Forms::image ? Forms::image : Forms::bitcode));
        ASSERT_TRUE(
            cache.add(arriving(*build("built.cpp",
                                      "extern \"C\" void note(long); static int s = (note(1), 7); ROVE_ENTRY void "
                                      "go(rove_here *h, const void *p, size_t n) { *(long *)p = s; (void)h, "
                                      "(void)n; }"),
                               {form}),
                      false));
        Function* go = cache.find("built:go");
        noted.clear();
        threads_left = form == Forms::image ? 1 : 2;  // the worker, and LLVM's
        expect_no_thread(outcome(cache, *go));
        EXPECT_EQ(noted.size(), 0U);
        threads_left = -1;
        EXPECT_EQ(call(cache, *go), 7);
        EXPECT_EQ(noted.size(), 1U);
    }
}

// ---- workers by themselves

class NoWorkerTest : public KeepingTest {
protected:
    void TearDown() override {
        threads_left = -1;
        const LockOf lock(mutex_);
        workers_.stop(Clock::now() + 30s);
    }

    std::function<bool(Duty)> does_ = [](Duty) { return false; };  // under the lock
    Workers workers_{{.lock = lock_,
                      .options = options_,
                      .evictor = evictor_,
                      .all = [] { return std::shared_ptr<void>(); },
                      .do_next = [this](Duty duty) { return does_(duty); }}};
};

TEST_F(NoWorkerTest, ADutyHasNoWorkerUntilThereIsAThreadForIt) {
    const LockOf lock(mutex_);
    threads_left = 0;
    const Status refused = workers_.start(Duty::images);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::overloaded);
    EXPECT_TRUE(refused.error().message().starts_with("node 7 can load no package: its machine has no thread"))
        << refused.error().message();
    threads_left = 1;
    EXPECT_TRUE(workers_.start(Duty::images));
    EXPECT_EQ(threads_left, 0);
}

TEST_F(NoWorkerTest, ADutyThatNobodyTakesOverStays) {
    const auto package = this->package("sum", 10);
    std::vector<pid_t> pieces;
    std::optional<Status> handed_over;
    does_ = [&](Duty) {
        if (pieces.size() == 2) return false;
        pieces.push_back(gettid());
        threads_left = 0;
        if (pieces.size() == 1) handed_over = workers_.hand_over(Duty::bitcode, *package);
        lock_.notify_all();
        return true;
    };
    const LockOf lock(mutex_);
    ASSERT_TRUE(workers_.start(Duty::bitcode));
    for (const TimePoint until = Clock::now() + 30s; pieces.size() < 2 && Clock::now() < until;)
        lock_.wait_until(until);
    ASSERT_TRUE(handed_over);
    ASSERT_FALSE(*handed_over);
    EXPECT_EQ(handed_over->error().code(), ErrorCode::overloaded);
    ASSERT_EQ(pieces.size(), 2U) << "its worker goes on";
    EXPECT_EQ(pieces[1], pieces[0]);
}

}  // namespace
}  // namespace rove::code
