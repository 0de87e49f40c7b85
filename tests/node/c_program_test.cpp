// A C program against librove.so, as client and as server.
#include <gtest/gtest.h>

#include "process.hpp"

namespace rove::test {
namespace {

std::string program() {
    return std::filesystem::path(rove()).parent_path() / "c_program";
}

TEST(CProgram, IsAClient) {
    NodeProcess server;
    const Ran ran = run({program(), package("basics.c"), "echo", "from C", server.address()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "from C\nfrom C\nfrom C\n");
}

TEST(CProgram, IsAServerToo) {
    const Ran ran = run({program(), package("basics.c"), "echo", "to itself"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "to itself\nto itself\nto itself\n");
}

TEST(CProgram, IsToldWhatWentWrong) {
    NodeProcess server;
    Ran ran = run({program(), package("basics.c"), "complain", "C", server.address()});
    EXPECT_EQ(ran.status, 1);
    EXPECT_EQ(ran.err, "call: no luck with C (failed)\n");
    ran = run({program(), "/no/such.rove", "echo", "x", server.address()});
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.err.find("start: cannot read package /no/such.rove"), std::string::npos) << ran.err;
    ran = run({program(), package("basics.c"), "echo", "x", "127.0.0.1:1"});
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.err.find("no node answers"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("(disconnected)"), std::string::npos) << ran.err;
}

// No page of a node that has run shipped code, image and bitcode, is writable and executable at once.
TEST(Memory, IsNeverWritableAndExecutable) {
    NodeProcess server;
    const Ran ran = run({rove(), "call", server.address(), package("basics.c") + ":count", "--repeat", "2000"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    const Ran maps = run({"cat", "/proc/" + std::to_string(server.pid()) + "/maps"});
    ASSERT_NE(maps.out.find("rove-code"), std::string::npos) << "the test looks at the wrong process";
    EXPECT_NE(maps.out.find(" r-xs "), std::string::npos);
    EXPECT_EQ(maps.out.find(" rwx"), std::string::npos) << maps.out;
}

}  // namespace
}  // namespace rove::test
