// Exceptions that pass functions which were compiled without them.
#include "cache_fixture.hpp"

namespace rove::code {
namespace {

// What a C++ library would do: calls back, and says whether that threw.
extern "C" int catch_what(void (*callback)()) {
    try {
        callback();
    } catch (int) {
        return 7;
    }
    return 0;
}
extern "C" void throw_seven() {
    throw 7;
}

class UnwindingTest : public CacheTest {
protected:
    // Of several sources, which are optimised as one.
    std::shared_ptr<PackageStore> build_of(const std::vector<std::pair<std::string, std::string>>& sources) {
        toolchain::BuildOptions options;
        options.source = folder_.path() / "mix";
        std::filesystem::create_directory(options.source);
        for (const auto& [file, text] : sources)
            EXPECT_TRUE(toolchain::write_file(options.source / file, as_bytes("#include <rove/rove.h>\n" + text)));
        options.output = folder_.path() / "mix.rove";
        options.targets = {std::string(host_triple())};
        const Status done = toolchain::build(options);
        EXPECT_TRUE(done) << done.error().message();
        return value_or_throw(PackageStore::open(options.output));
    }
    static CodeOptions with_thrower(Forms form) {
        CodeOptions given = options(form);
        given.host_symbols.push_back({"catch_what", reinterpret_cast<void*>(&catch_what)});
        given.host_symbols.push_back({"throw_seven", reinterpret_cast<void*>(&throw_seven)});
        return given;
    }
};

// C says that nothing unwinds through it, and its callers would have no handlers and no destructors.
TEST_F(UnwindingTest, WhatPassesACFunctionOfThePackageIsCaughtByItsCaller) {
    const auto package =
        build_of({{"caller.cpp",
                   "extern \"C\" int middle(int (*f)(int), int x);\n"
                   "struct Held { long& count; explicit Held(long& c) : count(c) { ++count; } ~Held() { --count; } };\n"
                   "static int inner(int x, long& held) {\n"
                   "    Held h(held);\n"
                   "    try { return middle([](int y) -> int { if (y > 2) throw y; return y; }, x); } catch (int) { "
                   "return -1; }\n"
                   "}\n"
                   "ROVE_ENTRY void run(rove_here*, const void* p, size_t) {\n"
                   "    long held = 0, sum = inner(1, held) * 100 + inner(3, held) * 10;\n"
                   "    *(long*)p = sum + held;\n"
                   "}\n"},
                  {"middle.c",
                   "int depth; int middle(int (*f)(int), int x) { depth++; int r = f(x) + 1; depth--; return r; }\n"}});
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        CodeCache cache(options(form));
        ASSERT_TRUE(cache.add(package, false));
        EXPECT_EQ(call(cache, *cache.find("mix:run")), 2 * 100 - 10) << static_cast<int>(form);
    }
}

TEST_F(UnwindingTest, WhatPassesAPackageInCIsCaughtByWhatCalledIt) {
    const auto package = build("back.c",
                               "int catch_what(void (*)(void)); void throw_seven(void); static volatile int n;\n"
                               "static void back(void) { throw_seven(); n++; }\n" +
                                   entry("run", "catch_what(back)"));
    for (const Forms form : {Forms::image, Forms::bitcode}) {
        CodeCache cache(with_thrower(form));
        ASSERT_TRUE(cache.add(package, false));
        EXPECT_EQ(call(cache, *cache.find("back:run")), 7) << static_cast<int>(form);
    }
}

}  // namespace
}  // namespace rove::code
