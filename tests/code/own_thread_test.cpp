// Code of packages in threads of its own, and what it wants done at its end.
#include "code/own_thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "code/symbols.hpp"

namespace rove::code {
namespace {

// ---- OwnThread

struct Told {
    ~Told() {
        if (into != nullptr) into->push_back(gettid());
    }
    std::vector<pid_t>* into = nullptr;
};
thread_local Told told;
thread_local long value = 40;

TEST(OwnThreadTest, ItsThreadLocalsOutliveItsWork) {
    std::vector<pid_t> destroyed;
    long* kept = nullptr;
    auto started = OwnThread::start();
    ASSERT_TRUE(started);
    OwnThread& own = **started;
    EXPECT_TRUE(own.run("p on node 7", "constructor", [&] {
        told.into = &destroyed;
        kept = &value;
        ++value;
    }));
    const pid_t thread = own.id();
    EXPECT_NE(thread, gettid());
    EXPECT_EQ(*kept, 41) << "its own, and still there";
    EXPECT_TRUE(own.run("q on node 7", "constructor", [&] { value += gettid() == thread ? 1 : 100; }));
    EXPECT_EQ(*kept, 42) << "the same for all that it runs";
    EXPECT_TRUE(destroyed.empty());
    started->reset();
    EXPECT_FALSE(is_alive(thread));
    EXPECT_EQ(destroyed, std::vector<pid_t>{thread});
}

// What a constructor leaves in its thread is not for the next package's, nor for the threads that this starts.
TEST(OwnThreadTest, WorkFindsItAsTheFirstDid) {
    struct Seen {
        std::string name;
        bool blocks = false;
        int nice = 0, processors = 0, cancels = -1, policy = -1, policy_in_c = -1, slack = 0;
        locale_t locale{};
        bool operator==(const Seen&) const = default;
    };
    const auto look = [] {
        Seen seen;
        std::array<char, 16> name{};
        pthread_getname_np(pthread_self(), name.data(), name.size());
        seen.name = name.data();
        sigset_t blocked;
        pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
        seen.blocks = sigismember(&blocked, SIGUSR2) != 0;
        seen.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
        cpu_set_t processors;
        pthread_getaffinity_np(pthread_self(), sizeof processors, &processors);
        seen.processors = CPU_COUNT(&processors);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &seen.cancels);
        seen.policy = sched_getscheduler(0);
        sched_param ignored{};
        pthread_getschedparam(pthread_self(), &seen.policy_in_c, &ignored);
        seen.slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
        seen.locale = uselocale(nullptr);
        return seen;
    };
    auto started = OwnThread::start();
    ASSERT_TRUE(started);
    OwnThread& own = **started;
    Seen first, second;
    const locale_t other = newlocale(LC_ALL_MASK, "C", nullptr);
    EXPECT_TRUE(own.run("p on node 7", "constructor", [&] {
        first = look();
        pthread_setname_np(pthread_self(), "mine");
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        pthread_kill(pthread_self(), SIGUSR2);  // natively it would wait for ever
        if (geteuid() == 0) {
            setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), first.nice + 1);
            const sched_param lowest{};
            pthread_setschedparam(pthread_self(), SCHED_IDLE, &lowest);
        }
        prctl(PR_SET_TIMERSLACK, 1'000'000UL, 0, 0, 0);
        cpu_set_t one;
        pthread_getaffinity_np(pthread_self(), sizeof one, &one);
        for (int each = CPU_SETSIZE - 1; each >= 0 && CPU_COUNT(&one) > 1; --each) CPU_CLR(each, &one);
        pthread_setaffinity_np(pthread_self(), sizeof one, &one);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
        uselocale(other);
    }));
    EXPECT_TRUE(own.run("q on node 7", "constructor", [&] { second = look(); }));
    EXPECT_EQ(second, first);
    EXPECT_FALSE(own.is_worn());
    started->reset();
    freelocale(other);
}

// Workers of a node are batch threads; what constructors run, and the threads that they start, are as the program's.
TEST(OwnThreadTest, ItIsNoBatchThread) {
    int policy = -1;
    std::thread([&policy] {
        const sched_param none{};
        ASSERT_EQ(pthread_setschedparam(pthread_self(), SCHED_BATCH, &none), 0);
        auto started = OwnThread::start();
        ASSERT_TRUE(started);
        EXPECT_TRUE((*started)->run("p on node 7", "constructor", [&] { policy = sched_getscheduler(0); }));
    }).join();
    EXPECT_EQ(policy, sched_getscheduler(0));
}

// Who has no rights may give priority away, and not take it back. Root loses its rights as well.
void give_priority_away() {
    const auto self = static_cast<id_t>(gettid());
    setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + 5);
    syscall(SYS_setresuid, 65534, 65534, 65534);  // this thread's alone
}

TEST(OwnThreadTest, WorkThatCannotBeUndoneWearsItOut) {
    auto started = OwnThread::start();
    ASSERT_TRUE(started);
    OwnThread& own = **started;
    EXPECT_TRUE(own.run("p on node 7", "constructor", give_priority_away));
    EXPECT_TRUE(own.is_worn());
    EXPECT_FALSE(own.has_ended());
    EXPECT_TRUE(own.run("p on node 7", "destructor", [] {})) << "its own package's";
}

TEST(OwnThreadTest, WorkThatFailsLeavesNoCancellationEither) {
    for (const bool waits : {true, false}) {
        auto started = OwnThread::start();
        ASSERT_TRUE(started);
        OwnThread& own = **started;
        EXPECT_TRUE(own.run("p on node 7", "constructor", [] {}));
        own.keep_objects();
        const Status failed = own.run("q on node 7", "constructor", [waits] {
            pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
            pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
            if (waits) pthread_cancel(pthread_self());
            throw std::runtime_error("no");
        });
        ASSERT_FALSE(failed);
        EXPECT_NE(failed.error().message().find("let an exception out: no"), std::string::npos);
        EXPECT_EQ(own.has_ended(), waits);
        if (waits) continue;
        int state = -1, type = -1;
        EXPECT_TRUE(own.run("r on node 7", "constructor", [&] {
            pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
            pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
        }));
        EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE);
        EXPECT_EQ(type, PTHREAD_CANCEL_DEFERRED);
    }
}

TEST(OwnThreadTest, ACancellationThatWaitsIsNotForTheNextWork) {
    std::vector<pid_t> destroyed;
    auto started = OwnThread::start();
    ASSERT_TRUE(started);
    OwnThread& own = **started;
    EXPECT_TRUE(own.run("p on node 7", "constructor", [&] {
        told.into = &destroyed;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
        pthread_cancel(pthread_self());
    })) << "it has returned";
    EXPECT_TRUE(own.has_ended());
    EXPECT_TRUE(destroyed.empty()) << "it has succeeded";
    started->reset();
    EXPECT_EQ(destroyed.size(), 1U);
}

// What destroys them may be code that goes when work has failed. main()'s are never destroyed either.
TEST(OwnThreadTest, ValuesUnderKeysGoWhereWorkFailsAndStayWhereNot) {
    static int destroyed;
    destroyed = 0;
    pthread_key_t key{};
    ASSERT_EQ(pthread_key_create(&key, [](void*) { ++destroyed; }), 0);
    for (const bool ends : {false, true}) {
        auto started = OwnThread::start();
        ASSERT_TRUE(started);
        OwnThread& own = **started;
        int one = 1, two = 2;
        const void* seen = nullptr;
        const auto look = [&] { seen = pthread_getspecific(key); };
        EXPECT_FALSE(own.run("p on node 7", "constructor", [&] {
            pthread_setspecific(key, &one);
            throw std::runtime_error("no");
        }));
        EXPECT_TRUE(own.run("q on node 7", "constructor", look));
        EXPECT_EQ(seen, nullptr);
        EXPECT_TRUE(own.run("q on node 7", "constructor", [&] { pthread_setspecific(key, &two); }));
        own.keep_objects();
        EXPECT_TRUE(own.run("r on node 7", "constructor", look));
        EXPECT_EQ(seen, &two) << "statics may refer to it";
        if (ends) EXPECT_FALSE(own.run("s on node 7", "constructor", [] { pthread_exit(nullptr); }));
        started->reset();
        EXPECT_EQ(destroyed, 0);
    }
    pthread_key_delete(key);
}

TEST(OwnThreadTest, WorkThatEndsItLeavesWhatIsToBeKept) {
    std::vector<pid_t> destroyed;
    for (const bool keeps : {true, false}) {
        destroyed.clear();
        auto started = OwnThread::start();
        ASSERT_TRUE(started);
        OwnThread& own = **started;
        EXPECT_TRUE(own.run("p on node 7", "constructor", [&] { told.into = &destroyed; }));
        if (keeps) own.keep_objects();
        EXPECT_FALSE(own.run("q on node 7", "constructor", [] { pthread_exit(nullptr); }));
        EXPECT_TRUE(own.has_ended());
        if (keeps) EXPECT_TRUE(destroyed.empty());
        started->reset();
        EXPECT_EQ(destroyed.size(), 1U);
    }
}

TEST(OwnThreadTest, ItGoesWithItsOwnerWhateverWasAskedOfIt) {
    std::vector<pid_t> destroyed;
    pid_t thread = 0;
    EXPECT_TRUE(in_own_thread("p on node 7", "constructor", [&] {
        thread = gettid();
        told.into = &destroyed;
    }));
    EXPECT_FALSE(is_alive(thread));
    EXPECT_EQ(destroyed, std::vector<pid_t>{thread});
}

TEST(OwnThreadTest, HowItsWorkEndsIsSaid) {
    const Status thrown = in_own_thread("p on node 7", "constructor", [] { throw std::range_error("it is too far"); });
    ASSERT_FALSE(thrown);
    EXPECT_EQ(thrown.error().message(), "a constructor of package p on node 7 let an exception out: it is too far");
    const Status other = in_own_thread("p on node 7", "destructor", [] { throw 7; });
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().message(), "a destructor of package p on node 7 let an exception out: int");
    // Before another language's exception nothing is C++'s.
    alignas(_Unwind_Exception) std::array<std::byte, 512> memory{};
    memory.fill(std::byte{0x41});
    auto* const foreign = new (memory.data() + 256) _Unwind_Exception{};
    std::memcpy(&foreign->exception_class, "MOZ\0RUST", sizeof foreign->exception_class);
    const Status others =
        in_own_thread("p on node 7", "constructor", [foreign] { (void)_Unwind_RaiseException(foreign); });
    ASSERT_FALSE(others);
    EXPECT_EQ(others.error().message(),
              "a constructor of package p on node 7 let an exception out: one that is not of C++");
    const Status ended = in_own_thread("p on node 7", "constructor", [] { pthread_exit(nullptr); });
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().message(), "a constructor of package p on node 7 ended its thread");
}

// Natively it ends with its thread, too, which is its only one; but as if that were the end of the program.
struct Forks {
    ~Forks() {
        if (status == nullptr) return;
        const pid_t child = fork();
        if (child > 0) waitpid(child, status, 0);
    }
    int* status = nullptr;
};
thread_local Forks forks;

TEST(OwnThreadTest, TheChildOfAThreadLocalObjectsDestructorEndsThere) {
    int status = -1;
    EXPECT_TRUE(in_own_thread("p on node 7", "constructor", [&status] { forks.status = &status; }));
    EXPECT_EQ(status, EXIT_FAILURE << 8);
}

// ThreadSanitizer does not see that a thread ends by a system call.
#if !defined(__SANITIZE_THREAD__) && !__has_feature(thread_sanitizer)
// Makes threads until one of them has that number, which is free; that one stays until `stays` is ready.
std::thread thread_with(pid_t number, const std::shared_future<void>& stays) {
    for (;;) {
        // The next one that is made gets it, where this may be said; otherwise some 32,000 are made, until the numbers begin from the first again.
        std::ofstream("/proc/sys/kernel/ns_last_pid") << number - 1;
        std::promise<bool> has_it;
        std::thread made([&has_it, number, stays] {
            const bool found = gettid() == number;
            has_it.set_value(found);
            if (found) stays.wait();
        });
        if (has_it.get_future().get()) return made;
        made.join();
    }
}

TEST(OwnThreadTest, AnotherThreadThatGetsItsNumberIsNotWaitedFor) {
    auto started = OwnThread::start();
    ASSERT_TRUE(started);
    EXPECT_FALSE((*started)->run("p on node 7", "constructor", [] { syscall(SYS_exit, 0); }));
    std::promise<void> over;
    std::thread other = thread_with((*started)->id(), over.get_future().share());
    std::future<void> ended = std::async(std::launch::async, [&started] { started->reset(); });
    EXPECT_EQ(ended.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    over.set_value();
    other.join();
}
#endif

// ---- Destructors

std::vector<int> destroyed;
void note(void* number) {
    destroyed.push_back(*static_cast<int*>(number));
}
int numbers[] = {0, 1, 2, 3};

TEST(DestructorsTest, TheLastRegisteredRunsFirstAndSoDoThoseThatItRegisters) {
    destroyed.clear();
    static Destructors* all = nullptr;
    Destructors destructors;
    all = &destructors;
    EXPECT_TRUE(destructors.empty());
    EXPECT_TRUE(destructors.add(&note, &numbers[1]));
    EXPECT_TRUE(destructors.add(
        [](void* number) {
            note(number);
            EXPECT_TRUE(all->add(&note, &numbers[3]));
        },
        &numbers[2]));
    EXPECT_FALSE(destructors.empty());
    destructors.run();
    EXPECT_EQ(destroyed, (std::vector<int>{2, 3, 1}));
    destructors.run();
    EXPECT_EQ(destroyed.size(), 3U) << "each once";
}

TEST(DestructorsTest, ThoseOfAThreadCanBeRunWhileItLives) {
    destroyed.clear();
    auto started = OwnThread::start();
    ASSERT_TRUE(started);
    OwnThread& own = **started;
    Destructors run_now, dropped, left;
    EXPECT_TRUE(own.run("p on node 7", "constructor", [&] {
        EXPECT_TRUE(run_now.add_for_thread(&note, &numbers[1]) && run_now.add_for_thread(&note, &numbers[2]));
        EXPECT_TRUE(dropped.add_for_thread(&note, &numbers[3]));
        EXPECT_TRUE(left.add_for_thread(&note, &numbers[0]));
    }));
    run_now.run_of_thread(gettid());
    EXPECT_TRUE(destroyed.empty()) << "this thread has none";
    run_now.run_of_thread(own.id());
    EXPECT_EQ(destroyed, (std::vector<int>{2, 1}));
    EXPECT_TRUE(run_now.empty());
    EXPECT_FALSE(run_now.awaits_threads());
    dropped.drop();
    EXPECT_FALSE(dropped.awaits_threads());
    EXPECT_TRUE(left.awaits_threads());
    left.run();
    EXPECT_TRUE(left.awaits_threads()) << "statics end without those of threads";
    started->reset();
    EXPECT_EQ(destroyed, (std::vector<int>{2, 1, 0}));
    EXPECT_FALSE(left.awaits_threads());
}

TEST(DestructorsTest, WhatIsDroppedDoesNotRun) {
    destroyed.clear();
    Destructors destructors;
    EXPECT_TRUE(destructors.add(&note, &numbers[1]));
    destructors.drop();
    destructors.run();
    EXPECT_TRUE(destroyed.empty());
}

TEST(DestructorsTest, ThoseOfAThreadRunAtItsEndAndAreAwaited) {
    destroyed.clear();
    Destructors destructors;
    bool awaited = false;
    std::thread([&] {
        EXPECT_TRUE(destructors.add_for_thread(&note, &numbers[2]));
        awaited = destructors.awaits_threads();
    }).join();
    EXPECT_TRUE(awaited);
    EXPECT_FALSE(destructors.awaits_threads());
    EXPECT_EQ(destroyed, std::vector<int>{2});
}

}  // namespace
}  // namespace rove::code
