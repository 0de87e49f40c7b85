// The examples of the typed API, as a reader would run them: programs that no node has seen before.
#include <gtest/gtest.h>

#include <fstream>

#include "../node/process.hpp"

namespace rove::test {
namespace {

Ran example(const std::string& name, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{built(name)};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(command);
}

TEST(Examples, Hello) {
    const NodeProcess node;
    const Ran ran = example("hello", {node.address()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out,
              "Hello, reader, from node 0, process " + std::to_string(node.pid()) + "\n6 times 7 is 42 there, too\n");
    EXPECT_EQ(example("hello", {}).status, 2);
    const Ran nobody = example("hello", {"127.0.0.1:1"});
    EXPECT_EQ(nobody.status, 1);
    EXPECT_NE(nobody.err.find("is `rove node --listen 127.0.0.1:1` running?"), std::string::npos) << nobody.err;
}

TEST(Examples, InnerProduct) {
    const NodeProcess node;
    const Ran ran = example("inner_product", {node.address()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "1047552.0\n");
}

TEST(Examples, Histogram) {
    const NodeProcess node;
    const std::string file = (source_folder() / "LICENSE").string();
    std::ifstream stream(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto letters = std::count(text.begin(), text.end(), 'e');
    const Ran ran = example("histogram", {node.address(), file});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.out.find("\ne " + std::to_string(letters) + "\n"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find(" of " + std::to_string(text.size()) + " bytes can be printed"), std::string::npos);
}

TEST(Examples, ScatterGatherOverFourNodes) {
    const NodeProcess first;
    std::vector<NodeProcess> others;
    std::vector<std::string> addresses{first.address()};
    for (int i = 0; i < 3; ++i) {
        others.emplace_back(std::vector<std::string>{"--join", first.address()});
        addresses.push_back(others.back().address());
    }
    const Ran ran = example("scatter_gather", addresses);
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_EQ(ran.out, "sum of squares 21341334000, on nodes 0 1 2 3\n");
}

TEST(Examples, Reverse) {
    const NodeProcess node({"--threads", "1"});
    const Ran ran = example("reverse", {node.address()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "2.50\nno quinces: std::out_of_range\n");
}

TEST(Examples, ReadAsDocumentation) {
    for (const std::string name : {"03_hello/hello", "04_inner_product/inner_product", "05_histogram/histogram",
                                   "06_scatter_gather/scatter_gather", "07_reverse/reverse"}) {
        std::ifstream file(source_folder() / "examples" / (name + ".cpp"));
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        ASSERT_FALSE(text.empty()) << name;
        EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 60) << name;
    }
}

}  // namespace
}  // namespace rove::test
