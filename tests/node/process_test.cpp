// The tests' own way with processes: whatever fails, no test signals a process that is not its own.
#include "process.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <stdexcept>

namespace rove::test {
namespace {

TEST(NodeProcesses, OneThatDoesNotListenIsNone) {
    try {
        const NodeProcess node({"--threads", "none"});
        FAIL() << "it has process " << node.pid();
    } catch (const std::runtime_error& error) {
        EXPECT_NE(std::string(error.what()).find("does not listen: "), std::string::npos) << error.what();
    }
}

// Signal 0 only asks whether the process is there, so that a failure of this test ends nobody.
TEST(NodeProcesses, AnEndedOrMovedOneGetsNoSignal) {
    NodeProcess node;
    NodeProcess moved = std::move(node);
    // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): what is tested
    EXPECT_THROW(node.signal(0), std::logic_error);
    EXPECT_THROW(node.wait(), std::logic_error);
    moved.signal(0);
    moved.kill_now();
    EXPECT_THROW(moved.signal(0), std::logic_error);
    EXPECT_THROW(moved.wait(), std::logic_error);
}

}  // namespace
}  // namespace rove::test
