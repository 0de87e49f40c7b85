// Thread-local variables of what a program sends.
#include <gtest/gtest.h>

#include <string>

#include "bitcode/compiler.hpp"
#include "compiler_test.hpp"
#include "offload.hpp"

namespace rove::bitcode {
namespace {

class SentThreadLocals : public CompilerTest<> {
protected:
    // Why the program's one function, `sent`, cannot travel; empty: it can.
    std::string obstacle(const std::string& source) {
        const ByteBuffer bitcode = bitcode_of("program.cpp", kOffload + source + R"(
void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<sent>::run};
)");
        const auto all = compiler_->extract_all({.from = {"program", bitcode}});
        EXPECT_TRUE(all) << all.error().message();
        return all && all->size() == 1 ? all->front().facts.obstacle : "not one function";
    }
};

// They have no control object there, which is what code that travels asks for.
TEST_F(SentThreadLocals, OfALibraryKeepTheFunctionAtHome) {
    EXPECT_EQ(obstacle("extern \"C\" { extern __thread int counted; }\n"
                       "static int sent(int n) { return counted += n; }"),
              "it reaches the thread-local variable counted of a library, which code that travels cannot; let a "
              "function of that library return its address");
    EXPECT_EQ(obstacle("extern \"C\" int* address_of_counted();\n"
                       "static int sent(int n) { return *address_of_counted() += n; }"),
              "");
}

TEST_F(SentThreadLocals, OfTheLibraryOfCppTravel) {
    EXPECT_EQ(obstacle("#include <mutex>\nstatic int sent(int n) { static std::once_flag once; "
                       "std::call_once(once, [&] { ++n; }); return n; }"),
              "");
}

}  // namespace
}  // namespace rove::bitcode
