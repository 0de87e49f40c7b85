// Programs that are run: what they get of this process, what is read of them, and that nothing of them is left.
#include "base/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/descriptor_limit.hpp"

namespace rove {
namespace {

using std::chrono::seconds;

Process started(const std::vector<std::string>& command, const ProcessOptions& options = {}) {
    Result<Process> process = Process::start(command, options);
    EXPECT_TRUE(process) << process.error().message();
    return process ? std::move(*process) : Process();
}

Process shell(const std::string& script, const ProcessOptions& options = {}) {
    return started({"sh", "-c", script}, options);
}

// Gone, or ended and not reaped by whoever inherited it.
bool is_gone(pid_t process) {
    for (const TimePoint until = Clock::now() + seconds(20); Clock::now() < until;
         std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
        std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
        std::string number, name, state;
        if (!(stat >> number >> name >> state) || state == "Z") return true;
    }
    return false;
}

TEST(Process, BothOutputsAreReadWhileItWrites) {
    const Ran ran =
        shell("head -c 300000 /dev/zero >&2; head -c 200000 /dev/zero; head -c 100000 /dev/zero >&2; exit 3",
              {.err = ProcessOptions::kPipe})
            .communicate();
    EXPECT_EQ(ran.status, 3);
    EXPECT_EQ(ran.out.size(), 200'000U);
    EXPECT_EQ(ran.err.size(), 400'000U);
}

// Programs that call select() cannot use higher numbers.
TEST(Process, HasTheLimitOfDescriptorsThatThisOneHadAtFirst) {
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit low{.rlim_cur = limit.rlim_max / 2, .rlim_max = limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    allow_all_descriptors();
    rlimit raised{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &raised), 0);
    EXPECT_EQ(raised.rlim_cur, limit.rlim_max);
    EXPECT_EQ(shell("ulimit -Sn").communicate().out, std::to_string(low.rlim_cur) + "\n");
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(Process, KeepsTheBeginningOfMoreThanIsWanted) {
    const Ran ran = shell("echo one; echo two >&2; head -c 300000 /dev/zero", {.err = ProcessOptions::kAsOutput})
                        .communicate({}, 6);
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.out, "one\ntw");
}

TEST(Process, EndsWhenItsTimeIsUp) {
    const Ran ran = shell("echo begun; sleep 1000 & wait").communicate(Clock::now() + std::chrono::milliseconds(300));
    EXPECT_EQ(ran.status, 128 + SIGKILL);
    EXPECT_EQ(ran.out, "begun\n");
}

// What it has started may go on, and keeps the pipe.
TEST(Process, WhatHasEndedIsNotWaitedFor) {
    const Ran ran = shell("sleep 1000 & echo done").communicate(Clock::now() + seconds(100));
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.out, "done\n");
}

TEST(Process, EndsWithAllThatItHasStarted) {
    for (const char* const script : {"sleep 1000 & echo $!; wait", "sleep 1000 & echo $!"}) {
        pid_t child = 0, program = 0;
        {
            Process process = shell(script);
            program = process.pid();
            child = static_cast<pid_t>(std::stol(process.read_line(Clock::now() + seconds(20))));
        }
        EXPECT_TRUE(is_gone(child)) << script;
        EXPECT_NE(::kill(program, 0), 0) << script;
    }
}

TEST(Process, IsAskedToEndWhereItHasTime) {
    const std::string told = testing::TempDir() + "rove-process-told-" + std::to_string(getpid());
    {
        Process process = shell("trap 'echo told > " + told + "; exit' TERM; echo ready; while :; do sleep 0.01; done",
                                {.grace = seconds(100)});
        EXPECT_EQ(process.read_line(), "ready");
    }
    EXPECT_EQ(unlink(told.c_str()), 0);
}

// Until then another process could get its number, and a signal that is for this one.
TEST(Process, KeepsItsNumberWhenItHasEnded) {
    Process process = started({"true"});
    EXPECT_EQ(process.wait(), 0);
    EXPECT_FALSE(process.runs());
    EXPECT_EQ(::kill(process.pid(), 0), 0);
    const Process moved = std::move(process);
    EXPECT_EQ(process.pid(), -1);  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move): what is tested
    EXPECT_EQ(::kill(moved.pid(), 0), 0);
}

TEST(Process, GetsTheDescriptorsThatItIsGivenAndNoOthers) {
    const Descriptor another(dup(STDERR_FILENO)), higher(fcntl(STDERR_FILENO, F_DUPFD, 20));  // not closed by an exec
    Process process = shell("echo given >&9; ls /proc/self/fd", {.descriptors = {{another.number(), 9}}});
    EXPECT_EQ(process.communicate().out, "0\n1\n2\n3\n9\n");  // 3: the folder that ls reads
}

// A number may be asked for that one of those given has here.
TEST(Process, DescriptorsMayChangePlaces) {
    std::array<int, 2> one{}, two{};
    ASSERT_EQ(pipe2(one.data(), O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(two.data(), O_CLOEXEC), 0);
    const Descriptor first(one[0]), second(two[0]);
    Descriptor first_end(one[1]), second_end(two[1]);
    Process process =
        started({"bash", "-c", "echo first >&" + std::to_string(two[1]) + "; echo second >&" + std::to_string(one[1])},
                {.descriptors = {{one[1], two[1]}, {two[1], one[1]}}});
    EXPECT_EQ(process.wait(), 0);
    char line[16] = {};
    EXPECT_EQ(read(first.number(), line, sizeof line), 6);
    EXPECT_EQ(std::string_view(line), "first\n");
}

TEST(Process, ItsInputEndsWhenItIsClosed) {
    Process process = started({"cat"}, {.in = ProcessOptions::kPipe});
    ASSERT_EQ(write(process.in().number(), "some\n", 5), 5);
    EXPECT_EQ(process.read_line(), "some");
    EXPECT_FALSE(process.ended());
    process.in().close();
    EXPECT_EQ(process.wait(), 0);
}

TEST(Process, ItsEnvironmentIsThisOnesWithWhatItIsGiven) {
    setenv("ROVE_TEST_KEPT", "kept", 1);
    setenv("ROVE_TEST_CHANGED", "before", 1);
    const Ran ran = shell("echo $ROVE_TEST_KEPT $ROVE_TEST_CHANGED $ROVE_TEST_NEW",
                          {.environment = {"ROVE_TEST_CHANGED=after", "ROVE_TEST_NEW=new"}})
                        .communicate();
    EXPECT_EQ(ran.out, "kept after new\n");
}

TEST(Process, WhatCannotBeStartedIsAnError) {
    const Result<Process> none = Process::start({"rove-no-such-program"});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), ErrorCode::unsupported);
    const Result<Process> folder = Process::start({"/"});
    ASSERT_FALSE(folder);
    EXPECT_EQ(folder.error().code(), ErrorCode::failed);
}

// All signals are blocked while it is begun, and none of them from then on.
TEST(Process, IsEndedByASignal) {
    Process process = started({"sleep", "1000"});
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait(Clock::now() + seconds(20)), 128 + SIGTERM);
}

}  // namespace
}  // namespace rove
