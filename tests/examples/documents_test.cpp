// The examples that docs/c.md and docs/cpp.md show in full: they run, and what is shown is what runs.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "../node/process.hpp"

namespace rove::test {
namespace {

std::string content(const std::filesystem::path& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
}

// A package of a file beside the C programs.
std::string c_package(const std::string& name) {
    const std::string path = (scratch() / (name + ".rove")).string();
    const Ran ran =
        run({rove(), "build", (source_folder() / "examples/02_c_program" / (name + ".c")).string(), "-o", path});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return path;
}

// An example that serves until its input ends.
class Served {
public:
    explicit Served(const std::string& program)
        : out_(scratch() / program), pipe_(popen((built(program) + " > " + out_.string()).c_str(), "w")) {}
    ~Served() {
        if (pipe_ != nullptr) (void)end();
    }
    Served(const Served&) = delete;
    [[nodiscard]] std::string address() const {
        const std::string begin = "listening ";
        for (int i = 0; i < 2000; ++i) {
            const std::string text = content(out_);
            if (text.starts_with(begin) && text.ends_with('\n'))
                return text.substr(begin.size(), text.size() - begin.size() - 1);
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        ADD_FAILURE() << out_ << " has no address";
        return {};
    }
    // Its exit status.
    int end() { return pclose(std::exchange(pipe_, nullptr)); }
    [[nodiscard]] std::string out() const { return content(out_); }

private:
    std::filesystem::path out_;
    FILE* pipe_;
};

TEST(Documents, ShowWhatRuns) {
    const std::vector<std::pair<std::string, std::vector<std::string>>> pages{
        {"docs/c.md",
         {"02_c_program/words.c", "02_c_program/client.c", "02_c_program/stock.h", "02_c_program/server.c",
          "02_c_program/take.c", "02_c_program/words.py"}},
        {"docs/cpp.md",
         {"08_state/visits.cpp", "08_state/counts.hpp", "08_state/counts_node.cpp", "08_state/counts_client.cpp",
          "08_state/scale.cpp"}}};
    for (const auto& [page, files] : pages) {
        const std::string text = content(source_folder() / page);
        for (const std::string& file : files) {
            const std::string shown = content(source_folder() / "examples" / file);
            ASSERT_FALSE(shown.empty()) << file;
            EXPECT_NE(text.find("\n" + shown + "```\n"), std::string::npos) << page << " shows another " << file;
        }
    }
}

TEST(Documents, AnEntryInCKeepsAStatic) {
    const NodeProcess node;
    const std::string words = c_package("words");
    for (const std::string expected : {"3 words, 3 in all\n", "3 words, 6 in all\n"}) {
        const Ran ran = run({built("c_client"), node.address(), words, " one two\tthree "});
        EXPECT_EQ(ran.status, 0) << ran.err;
        EXPECT_EQ(ran.out, expected);
    }
    const Ran none = run({built("c_client"), node.address(), words, " "});
    EXPECT_EQ(none.status, 1);
    EXPECT_EQ(none.err, "client: there is no word in it (failed)\n");
}

#ifndef ROVE_SANITIZED  // python3 is not linked with the runtime that librove.so needs then
TEST(Documents, AClientInPython) {
    const NodeProcess node;
    const std::string words = c_package("words");
    const auto count = [&](const std::string& text) {
        return run({"env", "LD_LIBRARY_PATH=" + built("../lib"), "python3",
                    (source_folder() / "examples/02_c_program/words.py").string(), node.address(), words, text});
    };
    EXPECT_EQ(count("one two three").out, "3 words, 3 in all\n");
    const Ran none = count(" ");
    EXPECT_EQ(none.status, 1);
    EXPECT_EQ(none.err, "words.py: there is no word in it\n");
}
#endif

TEST(Documents, AServerInCSharesWhatItHas) {
    Served server("c_server");
    const std::string take = c_package("take");
    const auto asked = [&](const std::string& hex) {
        return run({rove(), "call", server.address(), take + ":take", "--payload-hex", hex});
    };
    EXPECT_EQ(asked("0300000000000000").out, "0700000000000000\n");
    EXPECT_NE(asked("0800000000000000").err.find("there are not that many"), std::string::npos);
    EXPECT_EQ(server.end(), 0);
    EXPECT_NE(server.out().find("\n7 apples are left\n"), std::string::npos) << server.out();
}

TEST(Documents, StateInAStatic) {
    const NodeProcess node;
    EXPECT_EQ(run({built("visits"), node.address()}).out, "1\n2\n3\n");
    EXPECT_EQ(run({built("visits"), node.address()}).out, "4\n5\n6\n");
}

TEST(Documents, StateInAnObjectOfTheNodesProgram) {
    Served server("counts_node");
    const std::string address = server.address();
    EXPECT_EQ(run({built("counts_client"), address}).out, "pear 1\napple 1\npear 2\n");
    EXPECT_EQ(run({built("counts_client"), address}).out, "pear 3\napple 2\npear 4\n");
    EXPECT_EQ(server.end(), 0);
}

TEST(Documents, StateInABuffer) {
    const NodeProcess node;
    EXPECT_EQ(run({built("scale"), node.address()}).out, "60\n50\n10 20 30\n");
}

}  // namespace
}  // namespace rove::test
