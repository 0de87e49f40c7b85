// The process in which bitcode of peers is compiled: its bounds, its end, and others that take its place.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "jit/process/watch.hpp"
#include "written_bitcode.hpp"

namespace rove::bitcode {
namespace {

using CompilerProcessTest = WrittenBitcode;

// LLVM splits it into 16,384 instructions, and goes over all of them for each.
constexpr const char* kSlow =
    "define void @go(ptr %p, ptr %q) {\n  %a = load <16384 x i64>, ptr %p\n  %b = load <16384 x i64>, ptr %q\n"
    "  %c = sdiv <16384 x i64> %a, %b\n  store <16384 x i64> %c, ptr %p\n  ret void\n}\n";

TEST_F(CompilerProcessTest, WhatKeepsLlvmForTooLongIsStopped) {
    const ByteBuffer slow = bitcode_of(kSlow);
    const Bounds short_time{.processor_time = std::chrono::seconds(1), .memory = std::size_t{1} << 40};
    EXPECT_EQ(why_not_compiled(slow, short_time),
              "deep does not compile: LLVM gave up: it took more than 1 s of a processor");
    const Bounds little{.processor_time = std::chrono::seconds(60), .memory = std::size_t{1} << 20};
    EXPECT_EQ(why_not_compiled(slow, little), "deep does not compile: LLVM gave up: it took more than 1 MiB of memory");
    EXPECT_EQ(why_not(with_types(10)), "") << "others are compiled";
}

// Threads of this process take memory at the same time, as functions of a node do.
TEST_F(CompilerProcessTest, WhatOthersTakeIsNotCounted) {
    const ByteBuffer lasting = bitcode_of(kLasting);
    std::atomic<bool> done{false};
    std::thread other([&done] {
        while (!done) {
            std::vector<char> much(std::size_t{256} << 20, 'x');
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    });
    const Bounds little{.memory = std::size_t{128} << 20};
    for (int i = 0; i < 10; ++i) EXPECT_EQ(why_not_compiled(lasting, little), "");
    done = true;
    other.join();
}

// A directive of the assembler that nobody has thought of may read a file, and there are files whose reading never ends.
TEST_F(CompilerProcessTest, WorkThatStandsStillIsStopped) {
    std::atomic<bool> ends{false};
    std::thread works([&ends] { ends.wait(false); });
    Watch waits({.standstill = std::chrono::seconds(1)}, works.native_handle());
    EXPECT_EQ(waits.look(), std::nullopt);
    std::optional<std::string> why;
    for (int i = 0; i < 100 && !why; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        why = waits.look();
    }
    EXPECT_EQ(why, "it stood still for 1 s");
    ends = true;
    ends.notify_all();
    works.join();
}

// In the environment of the compiler's process, which is no child of this one.
const std::string kMark = fmt::format("ROVE_TESTED_BY={}", getpid());
[[maybe_unused]] const int marked = putenv(const_cast<char*>(kMark.c_str()));

std::string content_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// -1: there is none.
pid_t compiler_of_this_process() {
    for (const auto& each : std::filesystem::directory_iterator("/proc")) {
        const std::string folder = each.path();
        const pid_t pid = std::atoi(each.path().filename().c_str());
        if (pid <= 0 || content_of(folder + "/comm") != "rove-compiler\n") continue;
        if (content_of(folder + "/environ").find(kMark + '\0') != std::string::npos) return pid;
    }
    return -1;
}

TEST_F(CompilerProcessTest, TheCompilersProcessIsBegunAnewIfItWasEnded) {
    const ByteBuffer few = bitcode_of(with_types(10));
    EXPECT_EQ(why_not_compiled(few), "");
    const pid_t first = compiler_of_this_process();
    ASSERT_GT(first, 0);
    ASSERT_EQ(kill(first, SIGKILL), 0);
    EXPECT_EQ(why_not_compiled(few), "");
    const pid_t second = compiler_of_this_process();
    EXPECT_GT(second, 0);
    EXPECT_NE(second, first);
}

// Whoever stopped it may never go on.
TEST_F(CompilerProcessTest, TheCompilersProcessIsBegunAnewIfItWasStopped) {
    const ByteBuffer few = bitcode_of(with_types(10));
    EXPECT_EQ(why_not_compiled(few), "");
    std::string numbers = "@numbers = constant [60000 x i64] [i64 1";
    for (std::uint64_t i = 2, value = 1; i <= 60'000; ++i)
        numbers += fmt::format(", i64 {}", value = value * 6364136223846793005 + 1442695040888963407);
    const ByteBuffer many = bitcode_of(numbers + "]\ndefine ptr @go() {\n  ret ptr @numbers\n}\n");
    ASSERT_GT(many.size(), std::size_t{400'000}) << "more than a socket takes at once";
    for (const ByteBuffer* bitcode : {&few, &many}) {
        const pid_t first = compiler_of_this_process();
        ASSERT_GT(first, 0);
        ASSERT_EQ(kill(first, SIGSTOP), 0);
        EXPECT_EQ(why_not_compiled(*bitcode), "");
        for (int i = 0; i < 1000 && kill(first, 0) == 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_NE(kill(first, 0), 0) << "the one that was stopped is left behind";
    }
}

// Not while it compiles, but before.
TEST_F(CompilerProcessTest, TheCompilersProcessIsBegunAnewIfItHasNoMemoryForAQuestion) {
    const ByteBuffer few = bitcode_of(with_types(10));
    EXPECT_EQ(why_not_compiled(few), "");
    const pid_t first = compiler_of_this_process();
    ASSERT_GT(first, 0);
    const rlimit none{0, 0};
    ASSERT_EQ(prlimit(first, RLIMIT_AS, &none, nullptr), 0);
    EXPECT_NE(why_not_compiled(ByteBuffer(std::size_t{100} << 20)), "");
    EXPECT_EQ(why_not_compiled(few), "");
    EXPECT_NE(compiler_of_this_process(), first);
}

// Ctrl-C is for the programs of a terminal's group. Processors are shared out between sessions, and the two work on one thing.
TEST_F(CompilerProcessTest, TheCompilersProcessIsInTheProgramsSessionAndNotInItsGroup) {
    EXPECT_EQ(why_not(with_types(10)), "");
    const pid_t compiler = compiler_of_this_process();
    ASSERT_GT(compiler, 0);
    EXPECT_EQ(getsid(compiler), getsid(0));
    EXPECT_EQ(getpgid(compiler), compiler);
}

// Neither wait() nor SIGCHLD of the program reports it.
TEST_F(CompilerProcessTest, TheCompilersProcessIsNoChildOfTheProgram) {
    EXPECT_EQ(why_not(with_types(10)), "");
    EXPECT_GT(compiler_of_this_process(), 0);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
}

// The first process of a container, and who has asked for that, become the parents of orphans.
TEST_F(CompilerProcessTest, TheCompilersProcessIsNoChildOfAProgramThatAdoptsOrphans) {
    const ByteBuffer few = bitcode_of(with_types(10));
    const ByteBuffer crashes = bitcode_of(kSlow);
    const Bounds no_time{.processor_time = std::chrono::seconds(0)};
    const pid_t child = fork();
    if (child == 0) {
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) _exit(2);
        for (int i = 0; i < 3; ++i) {  // each ends its process
            if (why_not_compiled(crashes, no_time).empty()) _exit(3);
            if (!why_not_compiled(few).empty()) _exit(4);
        }
        if (waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD) _exit(5);
        // As parents of the processes that compile: the spare one's, and none of those that have ended.
        int others = 0;
        for (const auto& each : std::filesystem::directory_iterator("/proc")) {
            const std::string status = content_of(each.path().string() + "/status");
            others += status.find(fmt::format("\nPPid:\t{}\n", getpid())) != std::string::npos ? 1 : 0;
        }
        _exit(others == 1 ? 0 : 6);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

// 2 KB of bitcode stand for it.
TEST_F(CompilerProcessTest, CodeOfAnySizeIsNotTaken) {
    EXPECT_EQ(why_not("define void @go() prefix [150000000 x i8] zeroinitializer { ret void }\n"),
              "deep does not compile: its code has 143 MiB, and 128 are the most; divide it");
}

// Whoever compiled well and whoever watches it decide one after the other.
TEST_F(CompilerProcessTest, WorkThatEndsAsItsTimeDoesIsAnswered) {
    const ByteBuffer few = bitcode_of(with_types(10));
    const Bounds no_time{.processor_time = std::chrono::seconds(0)};
    for (int i = 0; i < 30; ++i) {
        const std::string why = why_not_compiled(few, no_time);
        EXPECT_TRUE(why.empty() || why.find("it took more than 0 s") != std::string::npos) << why;
    }
}

TEST_F(CompilerProcessTest, TheChildOfAForkHasACompilerOfItsOwn) {
    const ByteBuffer few = bitcode_of(with_types(10));
    EXPECT_EQ(why_not_compiled(few), "");
    const pid_t child = fork();
    if (child == 0) _exit(why_not_compiled(few).empty() ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(why_not_compiled(few), "") << "the parent's is as it was";
}

TEST_F(CompilerProcessTest, SeveralThreadsCompileAtOnce) {
    const ByteBuffer lasting = bitcode_of(kLasting);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int turn = 0; turn < 5; ++turn) EXPECT_EQ(why_not_compiled(lasting), "");
        });
    for (std::thread& each : threads) each.join();
}

}  // namespace
}  // namespace rove::bitcode
