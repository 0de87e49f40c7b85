// Constructors by itself: functions of a test, run as the constructors of packages are.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <future>
#include <stdexcept>

#include "code/constructors.hpp"
#include "code/own_thread.hpp"
#include "loading_parts.hpp"

namespace rove::code {
namespace {

class ConstructorsTest : public LoadingTest {
protected:
    [[nodiscard]] Status run(PackageCode& package, const std::function<void()>& constructors) {
        const LockOf lock(mutex_);
        return constructors_.run(package, Duty::images, constructors);
    }
    // "": they have run to their end.
    [[nodiscard]] std::string outcome(PackageCode& package, const std::function<void()>& constructors) {
        const Status done = run(package, constructors);
        return done ? "" : done.error().message();
    }
    // That have objects to destroy, each asked in itself.
    [[nodiscard]] std::vector<pid_t> threads() {
        std::vector<pid_t> ids;
        constructors_.destroy_objects([&ids](pid_t id) { ids.push_back(id); });
        return ids;
    }
    [[nodiscard]] std::unique_ptr<PackageCode> built(const std::string& name = "built") { return package(name, 10); }
};

TEST_F(ConstructorsTest, TheyRunOneAfterTheOtherInAThreadThatStays) {
    const auto first = built("first"), second = built("second");
    pid_t thread = 0;
    EXPECT_EQ(outcome(*first,
                      [&] {
                          {
                              const LockOf held(mutex_);  // it is free
                              EXPECT_TRUE(first->constructing);
                          }
                          EXPECT_TRUE(threads().empty()) << "not while they run there";
                          thread = gettid();
                      }),
              "");
    EXPECT_FALSE(first->constructing);
    EXPECT_NE(thread, gettid());
    EXPECT_EQ(outcome(*second, [&] { EXPECT_EQ(gettid(), thread); }), "");
    EXPECT_EQ(threads(), std::vector<pid_t>{thread});
    EXPECT_TRUE(is_alive(thread));
}

TEST_F(ConstructorsTest, EachThreadDestroysItsObjectsItselfAlsoWhereThatThrows) {
    const auto package = built();
    pid_t thread = 0;
    ASSERT_EQ(outcome(*package, [&thread] { thread = gettid(); }), "");
    int asked = 0;
    constructors_.destroy_objects([&](pid_t id) {
        EXPECT_EQ(id, thread);
        EXPECT_EQ(gettid(), thread);
        if (++asked < 3) throw std::runtime_error("again");
    });
    EXPECT_EQ(asked, 3);
}

TEST_F(ConstructorsTest, TheDutyGoesOnMeanwhile) {
    std::promise<Duty> goes_on;
    do_next_ = [&, is_first = true](Duty duty) mutable {
        if (std::exchange(is_first, false)) goes_on.set_value(duty);
        return false;
    };
    const auto package = built();
    EXPECT_EQ(outcome(*package,
                      [&] {
                          auto went_on = goes_on.get_future();
                          ASSERT_EQ(went_on.wait_for(kPatience), std::future_status::ready);
                          EXPECT_EQ(went_on.get(), Duty::images);
                      }),
              "");
}

TEST_F(ConstructorsTest, WhatHasBeenConstructedIsDestroyedWhereOneThrows) {
    static std::vector<int> destroyed;
    destroyed.clear();
    const auto package = built();
    int numbers[] = {1, 2, 3};
    const auto note = [](void* number) { destroyed.push_back(*static_cast<int*>(number)); };
    const auto constructors = [&] {
        EXPECT_TRUE(package->destructors.add(note, &numbers[0]) && package->destructors.add(note, &numbers[1]));
        EXPECT_TRUE(package->destructors.add_for_thread(note, &numbers[2]));
        throw std::range_error("it is too far");
    };
    EXPECT_EQ(outcome(*package, constructors),
              "a constructor of package built on node 7 let an exception out: it is too far");
    EXPECT_EQ(destroyed, (std::vector<int>{3, 2, 1})) << "what the thread has first, the last one first";
    EXPECT_TRUE(package->destructors.empty());
}

TEST_F(ConstructorsTest, AThreadThatOnesHaveEndedIsNotUsedAgain) {
    const auto ends = built("ends"), other = built("other");
    pid_t thread = 0;
    EXPECT_EQ(outcome(*ends,
                      [&thread] {
                          thread = gettid();
                          pthread_exit(nullptr);
                      }),
              "a constructor of package ends on node 7 ended its thread");
    EXPECT_EQ(outcome(*other, [&thread] { EXPECT_NE(gettid(), thread); }), "");
}

TEST_F(ConstructorsTest, ThreadsThatStayForTheirObjectsAreBounded) {
    const auto package = built();
    std::vector<pid_t> threads;
    for (std::size_t i = 0; i < kConstructorThreadsMax; ++i) {
        ASSERT_EQ(outcome(*package, [&threads] { threads.push_back(gettid()); }), "");
        ASSERT_FALSE(run(*package, [] { pthread_exit(nullptr); }));
    }
    EXPECT_EQ(this->threads().front(), threads.front()) << "its objects are there still";
    const Status refused = run(*package, [&threads] { threads.clear(); });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::overloaded);
    EXPECT_TRUE(
        refused.error().message().starts_with("package built has constructors, and those of other packages have ended, "
                                              "or changed for good, 32 threads of node 7"))
        << refused.error().message();
    EXPECT_EQ(threads.size(), kConstructorThreadsMax) << "nothing has run";
}

// A package that fails has nothing there that would have to stay.
TEST_F(ConstructorsTest, AThreadThatOnesThatFailHaveWornOutIsGivenBack) {
    const auto package = built();
    for (std::size_t i = 0; i <= kConstructorThreadsMax; ++i) {
        const std::string why = outcome(*package, [] {
            // Who has no rights may give priority away, and not take it back. Root loses its rights as well.
            const auto self = static_cast<id_t>(gettid());
            setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + 5);
            syscall(SYS_setresuid, 65534, 65534, 65534);  // this thread's alone
            throw std::runtime_error("no");
        });
        ASSERT_NE(why.find("let an exception out: no"), std::string::npos) << i << ": " << why;
    }
    EXPECT_EQ(outcome(*package, [] {}), "");
}

TEST_F(ConstructorsTest, ThoseThatRunAtOnceAreBounded) {
    std::promise<void> word;
    const std::shared_future<void> said = word.get_future().share();
    std::vector<std::unique_ptr<PackageCode>> packages;
    std::vector<std::future<std::string>> running;
    std::atomic<int> ran{0};
    for (std::size_t i = 0; i < kConstructingMax; ++i) {
        packages.push_back(built("built" + std::to_string(i)));
        std::promise<void> begun;
        running.push_back(std::async(std::launch::async, [&, package = packages.back().get()] {
            return outcome(*package, [&] {
                begun.set_value();
                said.wait();
                ++ran;
            });
        }));
        begun.get_future().wait();
    }
    const auto more = built("more");
    const Status refused = run(*more, [&ran] { ++ran; });
    EXPECT_EQ(ran, 0) << "nothing of it has run";
    word.set_value();
    for (auto& each : running) EXPECT_EQ(each.get(), "");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::overloaded);
    EXPECT_TRUE(refused.error().message().starts_with(
        "package more has constructors, and those of 16 packages run on node 7 already"))
        << refused.error().message();
    EXPECT_EQ(outcome(*more, [&ran] { ++ran; }), "");
    EXPECT_EQ(ran, 17);
}

TEST_F(ConstructorsTest, NothingIsConstructedOrDestroyedOnceTheCacheHasStopped) {
    const auto package = built();
    const auto fail_if_run = [](void*) { ADD_FAILURE() << "its code may be gone"; };
    for (int round = 0; round < 2; ++round) {
        const Status done = run(*package, [&] {
            EXPECT_EQ(round, 0);
            EXPECT_TRUE(package->destructors.add(fail_if_run, nullptr));
            const LockOf held(mutex_);
            lock_.stop();
        });
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code(), ErrorCode::cancelled);
    }
    package->destructors.run();
}

}  // namespace
}  // namespace rove::code
