// Threads whose first failure comes where the C library's own memory is used up, too: in a child, which takes all that there is.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "rove/edge.h"
#include "rove/rove.h"

namespace rove::test {
namespace {

// What `fails` gives on a thread that failed at nothing before; -1: the process was ended.
int without_any_memory(int (*fails)()) {
    const pid_t child = fork();
    if (child == 0) {
        std::atomic<bool> is_used_up{false};
        std::thread thread([&] {
            while (!is_used_up) sched_yield();
            _exit(fails());
        });
        rlimit limit{};
        getrlimit(RLIMIT_AS, &limit);
        limit.rlim_cur = 1;  // no page more
        setrlimit(RLIMIT_AS, &limit);
        const auto take = [](std::size_t bytes) {
            static void* volatile last;  // NOLINT
            last = std::malloc(bytes);
            return last != nullptr;
        };
        for (std::size_t bytes = 1 << 20; bytes >= 16; bytes /= 2)
            while (take(bytes)) continue;
        is_used_up = true;
        thread.join();
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// glibc ends a process that has no memory for the destructor of a thread_local object.
TEST(WithoutAnyMemory, AThreadsFirstFailureIsTold) {
    EXPECT_EQ(without_any_memory([] { return rove_last_failure()->error; }), ROVE_OVERLOADED);
}
TEST(WithoutAnyMemory, AThreadsFirstFailureIsToldInC) {
    EXPECT_EQ(without_any_memory([] { return rove_package_open(nullptr, nullptr); }), ROVE_INVALID);
}

}  // namespace
}  // namespace rove::test
