// The demo's child processes, with scripts in the place of `rove`.
#include "processes.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <stdexcept>

namespace archive_walk {
namespace {

// A command of this text; it gets the arguments that `rove` would.
std::filesystem::path script(const ScratchDirectory& scratch, const std::string& text) {
    const auto path = scratch.path() / "rove";
    std::ofstream(path) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
}

TEST(Processes, OutputOfACommand) {
    EXPECT_EQ(output_of({"printf", "%s", "a b"}), "a b");
    EXPECT_THROW((void)output_of({"false"}), std::runtime_error);
}

TEST(Processes, ACommandThatIsNotThereIsNamed) {
    try {
        (void)output_of({"no-such-command-anywhere"});
        FAIL();
    } catch (const std::runtime_error& error) {
        EXPECT_NE(std::string(error.what()).find("no-such-command-anywhere: cannot be run"), std::string::npos);
    }
}

TEST(Processes, NodesJoinTheFirstAndEndWithTheirOwner) {
    const ScratchDirectory scratch;
    const auto rove = script(scratch, "trap 'exit 0' TERM; echo listening $$ $*; while :; do sleep 0.01; done\n");
    pid_t first = 0;
    {
        NodeProcesses nodes(rove, scratch.path());
        first = std::stoi(nodes.start(std::chrono::seconds(10)));
        const std::string address = nodes.addresses().front();
        EXPECT_NE(address.find("node --listen 127.0.0.1:0"), std::string::npos);
        EXPECT_NE(nodes.start(std::chrono::seconds(10)).find("--join " + address), std::string::npos);
        EXPECT_EQ(kill(first, 0), 0);
    }
    EXPECT_NE(kill(first, 0), 0);
}

TEST(Processes, ANodeThatDoesNotStartSaysWhy) {
    const ScratchDirectory scratch;
    NodeProcesses nodes(script(scratch, "echo the port is in use >&2; exit 1\n"), scratch.path());
    try {
        nodes.start(std::chrono::seconds(10));
        FAIL();
    } catch (const std::runtime_error& error) {
        EXPECT_NE(std::string(error.what()).find("the port is in use"), std::string::npos);
    }
}

TEST(Processes, ANodeThatSaysNothingIsGivenUp) {
    const ScratchDirectory scratch;
    NodeProcesses nodes(script(scratch, "exec sleep 100\n"), scratch.path());
    EXPECT_THROW(nodes.start(std::chrono::seconds(1)), std::runtime_error);
}

}  // namespace
}  // namespace archive_walk
