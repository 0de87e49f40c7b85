// The log of a node: writing it never waits for its reader, and peers cannot fill it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <future>
#include <sstream>

#include "base/descriptor.hpp"
#include "peer/complaints.hpp"

namespace rove::test {
namespace {

// Stderr is a pipe that nobody reads, until the end of it.
class FullPipe {
public:
    FullPipe() : before_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) {
        std::array<int, 2> ends{};
        if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
        read_ = Descriptor(ends[0]);
        (void)fcntl(ends[1], F_SETPIPE_SZ, 4096);
        dup2(ends[1], STDERR_FILENO);
        close(ends[1]);
    }
    ~FullPipe() { dup2(before_.number(), STDERR_FILENO); }
    [[nodiscard]] std::string read_some() const {
        std::array<char, 65536> text{};
        const ssize_t bytes = ::read(read_.number(), text.data(), text.size());
        return {text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
    }

private:
    Descriptor before_, read_;
};

TEST(Log, DoesNotWaitForAPipeThatNobodyReads) {
    const FullPipe pipe;
    auto said = std::async(std::launch::async, [] {
        for (int i = 0; i < 1000; ++i) log().warn("line {}", i);
    });
    const bool waits = said.wait_for(std::chrono::seconds(10)) != std::future_status::ready;
    const std::string first = pipe.read_some();
    EXPECT_FALSE(waits);
    while (said.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) (void)pipe.read_some();
    EXPECT_NE(first.find("line 0\n"), std::string::npos);
    log().warn("and then");
    const std::string then = pipe.read_some();
    EXPECT_NE(then.find("lines are left out here: nobody was reading"), std::string::npos) << then;
    EXPECT_NE(then.find("and then"), std::string::npos) << then;
}

// Which says that it takes something where there is room for a byte.
TEST(Log, DoesNotWaitForATerminalThatNobodyReads) {
    const Descriptor before(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
    const Descriptor reader(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    std::array<char, 65536> text{};
    ASSERT_TRUE(grantpt(reader.number()) == 0 && unlockpt(reader.number()) == 0 &&
                ptsname_r(reader.number(), text.data(), text.size()) == 0);
    {
        const Descriptor terminal(open(text.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
        ASSERT_EQ(dup2(terminal.number(), STDERR_FILENO), STDERR_FILENO);
    }
    auto said = std::async(std::launch::async, [] {
        for (int i = 0; i < 3000; ++i) log().warn("line {}", i);
    });
    const bool waits = said.wait_for(std::chrono::seconds(10)) != std::future_status::ready;
    while (said.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready)
        (void)::read(reader.number(), text.data(), text.size());
    const ssize_t bytes = ::read(reader.number(), text.data(), text.size());
    dup2(before.number(), STDERR_FILENO);
    EXPECT_FALSE(waits);
    ASSERT_GT(bytes, 0);
    EXPECT_NE(std::string(text.data(), static_cast<std::size_t>(bytes)).find("line 0\r\n"), std::string::npos);
}

// Whose number another file has by then.
TEST(Log, WritesNothingIntoWhatHasItsDescriptorsPlace) {
    const FullPipe pipe;
    log().warn("before");
    const std::string before = pipe.read_some();
    EXPECT_NE(before.find("before"), std::string::npos);
    std::array<int, 2> other{};
    ASSERT_EQ(pipe2(other.data(), O_CLOEXEC | O_NONBLOCK), 0);
    const Descriptor read(other[0]), write(other[1]);
    struct stat error{}, each{};
    ASSERT_EQ(fstat(STDERR_FILENO, &error), 0);
    for (int number = 3; number < 1024; ++number)  // whatever writes to stderr's pipe
        if (number != write.number() && fstat(number, &each) == 0 && each.st_ino == error.st_ino &&
            (fcntl(number, F_GETFL) & O_ACCMODE) == O_WRONLY)
            dup2(write.number(), number);
    log().warn("after");
    std::array<char, 100> text{};
    EXPECT_LT(::read(read.number(), text.data(), text.size()), 0) << text.data();
    EXPECT_NE(pipe.read_some().find("after"), std::string::npos);
}

// Such a pipe says that it takes something where it takes less than a long line.
TEST(Log, DoesNotWaitWithLongLines) {
    const FullPipe pipe;
    auto said = std::async(std::launch::async, [] {
        for (int i = 0; i < 20; ++i) log().warn("long {}", std::string(30'000, 'x'));
    });
    const bool waits = said.wait_for(std::chrono::seconds(10)) != std::future_status::ready;
    const std::string first = pipe.read_some();
    EXPECT_FALSE(waits);
    while (said.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) (void)pipe.read_some();
    EXPECT_NE(first.find(" bytes]\n"), std::string::npos) << "a line that is cut says so";
}

// Whoever writes to stderr through C's streams holds their lock while it writes, and may be shipped code.
TEST(Log, DoesNotWaitForWhoHoldsTheStreamsLock) {
    const FullPipe pipe;
    flockfile(stderr);
    auto said = std::async(std::launch::async, [] { log().warn("of this node"); });
    const bool waits = said.wait_for(std::chrono::seconds(10)) != std::future_status::ready;
    funlockfile(stderr);
    said.get();
    EXPECT_FALSE(waits);
    EXPECT_NE(pipe.read_some().find("warning of this node\n"), std::string::npos);
}

TEST(Log, TakesSoManyComplaintsASecond) {
    std::ostringstream text;
    log().sinks().push_back(std::make_shared<spdlog::sinks::ostream_sink_st>(text));
    const auto begun = std::chrono::steady_clock::now();
    Complaints complaints;
    for (int i = 0; i < 500; ++i) complaints.say("node 0", "a peer said something");
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(std::chrono::steady_clock::now() - begun).count();
    log().sinks().pop_back();
    std::istringstream lines(text.str());
    long count = 0;
    for (std::string line; std::getline(lines, line);) ++count;
    EXPECT_GE(count, 10);
    EXPECT_LE(count, 10 * (seconds + 1));
    EXPECT_LT(count, 500);
}

}  // namespace
}  // namespace rove::test
