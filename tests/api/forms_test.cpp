// One program in all forms: resident in one binary, resident in another compiler's, and travelling to a plain node.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../node/process.hpp"
#include "rove/rove.hpp"

namespace rove::test {
namespace {

std::string contents_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// `program serve`, ended with the object.
class Server {
public:
    explicit Server(const std::string& path) : log_(scratch() / "server.log") {
        const Descriptor log_to = value_or_throw(open_for_output(log_));
        process_ =
            value_or_throw(Process::start({path, "serve"}, {.in = ProcessOptions::kPipe, .err = log_to.number()}));
        const std::string line = process_.read_line();
        EXPECT_EQ(line.substr(0, 10), "listening ") << path;
        if (line.size() > 10) address_ = line.substr(10);
    }
    ~Server() {
        process_.in().close();
        EXPECT_EQ(process_.wait(), 0);
    }
    Server(const Server&) = delete;
    [[nodiscard]] const std::string& address() const { return address_; }
    [[nodiscard]] std::string log() const { return contents_of(log_); }

private:
    const std::filesystem::path log_;
    Process process_;
    std::string address_;
};

void expect_all_is_well(const Ran& ran) {
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_NE(ran.out.find("all is well"), std::string::npos) << ran.out << ran.err;
}

int double_it(int x) {
    return 2 * x;
}

TEST(Forms, OneBinaryEverywhere) {
    const Server server(built("api_program"));
    expect_all_is_well(run({built("api_program"), "call", server.address(), "resident"}));
}

TEST(Forms, FunctionsAreListed) {
    const Server server(built("api_program"));
    const Ran listed = run({rove(), "functions", server.address()});
    EXPECT_EQ(listed.status, 0) << listed.err;
    EXPECT_NE(listed.out.find("forms::square: int (int)\n"), std::string::npos) << listed.out;
    EXPECT_NE(listed.out.find("forms::greet: std::string (std::string)\n"), std::string::npos) << listed.out;
    const Ran json = run({rove(), "functions", server.address(), "--json"});
    const std::string square = R"--("name":"forms::square","signature":"int (int)")--";
    EXPECT_NE(json.out.find(square), std::string::npos) << json.out;
    const NodeProcess plain;
    EXPECT_EQ(run({rove(), "functions", plain.address()}).out, "");
}

TEST(Forms, TravellingAsImagesToAPlainNode) {
    const NodeProcess node({"--log", "error"});
    expect_all_is_well(run({built("api_program"), "call", node.address(), "shipped"}));
    expect_all_is_well(run({built("api_program"), "call", node.address(), "shipped"}));  // it is known there by now
}

TEST(Forms, AProgramWithFinishedPackagesNeverLoadsLlvm) {
    const NodeProcess node;
    const auto loads = [&node](const std::string& name) {
        const Ran ran = run({"env", "LD_DEBUG=files", "ROVE_CACHE=" + (scratch() / "llvm").string(), built(name),
                             "call", node.address(), "shipped"});
        EXPECT_EQ(ran.status, 0) << ran.out;
        return ran.err.find("librove-jit.so") != std::string::npos;
    };
    EXPECT_FALSE(loads("api_program"));
    EXPECT_TRUE(loads("api_program_bitcode"));
}

TEST(Forms, TravellingAsImagesOnly) {
    const NodeProcess node({"--forms", "image"});
    expect_all_is_well(run({built("api_program"), "call", node.address(), "shipped"}));
}

TEST(Forms, TravellingToANodeWithOneThreadOverTcp) {
    const NodeProcess node({"--threads", "1", "--fabric", "tcp"});
    expect_all_is_well(run({built("api_program"), "call", node.address(), "shipped"}));
}

TEST(Forms, TravellingFromAStrippedProgram) {
    const std::string stripped = (scratch() / "stripped").string();
    std::filesystem::copy_file(built("api_program"), stripped);
    ASSERT_EQ(run({"strip", stripped}).status, 0);
    const NodeProcess node;
    expect_all_is_well(run({stripped, "call", node.address(), "shipped"}));
}

// What one bundling knows of a program from the last one.
TEST(Forms, BundledAgainIsAsBundledFirst) {
    const std::filesystem::path cache = scratch() / "bundled";
    const auto bundled = [&cache](const std::string& name) {
        const std::string program = (scratch() / name).string();
        std::filesystem::copy_file(built("api_threads_bitcode"), program,
                                   std::filesystem::copy_options::overwrite_existing);
        const Ran ran = run({"env", "ROVE_CACHE=" + cache.string(), rove(), "bundle", "--json", program});
        EXPECT_EQ(ran.status, 0) << ran.err;
        return std::pair(ran.out, contents_of(program));
    };
    const auto [said, first] = bundled("program");
    EXPECT_NE(said.find(R"("from_cache":0)"), std::string::npos) << said;
    const auto kept = [&cache](const std::string& extension) {
        std::vector<std::filesystem::path> files;
        for (const auto& each : std::filesystem::directory_iterator(cache))
            if (each.path().extension() == extension) files.push_back(each.path());
        return files;
    };
    const auto known = [&kept] { return kept(".extracted"); };
    ASSERT_EQ(known().size(), 1U);
    ASSERT_EQ(kept(".objects").size(), 1U);
    const auto expect_same = [&, &before = first](const std::string& when) {
        const auto [again, program] = bundled("program");
        EXPECT_EQ(again.find(R"("from_cache":0)"), std::string::npos) << again << " " << when;
        EXPECT_TRUE(program == before) << when;
    };
    expect_same("when nothing has changed");
    const std::string file = contents_of(known().front());
    for (const std::size_t length : {std::size_t{0}, std::size_t{31}, file.size() - 1}) {
        std::filesystem::resize_file(known().front(), length);
        expect_same(fmt::format("when {} bytes of what is known are left", length));
    }
    std::ofstream(known().front(), std::ios::binary) << std::string(file.size(), 'x');
    expect_same("when what is known is wrong");
    for (const std::filesystem::path& each : kept(".rove")) std::filesystem::remove(each);
    EXPECT_TRUE(bundled("program").second == first) << "when packages are made again of kept objects";
}

// As a signal would leave it: objcopy has not written all.
TEST(Forms, AnObjcopyThatFailsLeavesTheProgramAsItWas) {
    const std::filesystem::path folder = scratch() / "torn";
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "objcopy") << "#!/bin/sh\nfor last; do :; done\necho torn > \"$last\"\nexit 1\n";
    std::filesystem::permissions(folder / "objcopy", std::filesystem::perms::owner_all);
    const std::string program = (scratch() / "whole").string();
    std::filesystem::copy_file(built("api_threads_bitcode"), program);
    const std::string before = contents_of(program);
    const auto files = [] {
        return std::distance(std::filesystem::directory_iterator(scratch()), std::filesystem::directory_iterator());
    };
    const auto there = files();
    const Ran ran = run({"env", "PATH=" + folder.string() + ":" + std::getenv("PATH"), rove(), "bundle", program});
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.err.find("the packages could not be added to " + program), std::string::npos) << ran.err;
    EXPECT_TRUE(contents_of(program) == before);
    EXPECT_EQ(files(), there);
}

// A library's file is another one by then, and the program is the same.
TEST(Forms, LibrariesAreLookedForEachTime) {
    const std::filesystem::path lacking = scratch() / "lacking";
    std::filesystem::create_directory(lacking);
    const Ran made = run(
        {"clang++-19", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", (lacking / "libapi_interposes.so").string()});
    ASSERT_EQ(made.status, 0) << made.err;
    const std::string program = (scratch() / "linked").string();
    const auto bundled = [&](const std::string& cache, const std::string& libraries) {
        std::filesystem::copy_file(built("api_interposed_bitcode"), program,
                                   std::filesystem::copy_options::overwrite_existing);
        const Ran ran = run({"env", "ROVE_CACHE=" + (scratch() / cache).string(), "LD_LIBRARY_PATH=" + libraries,
                             rove(), "bundle", program});
        EXPECT_EQ(ran.status, 0) << ran.err;
        return contents_of(program);
    };
    const std::string without = bundled("libraries", lacking.string());
    EXPECT_FALSE(bundled("libraries", "") == without) << "what the library has is still not looked for there";
    EXPECT_TRUE(bundled("libraries", "") == bundled("other", "")) << "as if nothing had been kept";
}

#ifdef ROVE_IS_PLAIN  // or the program would need a sanitizer's runtime
// A program of two files, one of them C. Each edit is a definition of EDIT.
constexpr const char* kEditedToo = R"(
#if EDIT == 1
inline int added(int n) { return n ^ 77; }
#endif
#include <rove/rove.hpp>
#include <map>
#include <string>
extern "C" int in_c(int n);
#if EDIT == 2
struct Shape { virtual ~Shape() = default; virtual int sides() { return 4; } virtual int area() { return 2; } };
#else
struct Shape { virtual ~Shape() = default; virtual int area() { return 1; } };
#endif
template <int N> inline int held = in_c(N);
int plain(int n) { return n + (EDIT == 3 ? 2 : 1); }
int words(int n) { std::map<int, std::string> all; all[n] = EDIT == 4 ? "one" : "two"; return (int)all[n].size(); }
int shapes(int n) { Shape shape; return shape.area() + n; }
int calls(int n) { return in_c(n); }
int holds(int n) { return held<EDIT == 5> + n; }
int main(int argc, char** argv) {
    rove::Node node;
    const rove::Peer peer = node.connect(argv[argc - 1]);
    return peer.sync(rove::fn<plain>, 1) + peer.sync(rove::fn<words>, 1) + peer.sync(rove::fn<shapes>, 1) +
           peer.sync(rove::fn<calls>, 1) + peer.sync(rove::fn<holds>, 1);
}
)";
constexpr const char* kEditedInC = R"(
extern int printf(const char*, ...);
static int told;
static int puts(const char* text) { told += text[0] != 0 ? (EDIT == 6 ? 7 : 5) : 0; return told; }
int used(void) { return puts("x"); }
int in_c(int n) { if (n > 100) printf("large\\n"); return told + n * (EDIT == 7 ? 3 : 2); }
)";

TEST(Forms, BundledAfterEachEditIsAsBundledCold) {
    const std::filesystem::path folder = scratch() / "edited";
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "p.cpp") << kEditedToo;
    std::ofstream(folder / "c.c") << kEditedInC;
    const std::string tree = std::getenv("ROVE_SOURCE_DIR"), lib = std::string(std::getenv("ROVE_BUILD_DIR")) + "/lib";
    const std::string program = (folder / "p").string();
    const auto made = [&](int edit) {
        const std::string define = "-DEDIT=" + std::to_string(edit);
        const auto object = [&](const char* compiler, const std::string& standard, const std::string& name) {
            return run({compiler, standard, "-O1", "-w", "-fno-assume-unique-vtables", define, "-Xclang",
                        "-fembed-bitcode=all", "-I" + tree + "/include", "-c", (folder / name).string(), "-o",
                        (folder / (name + ".o")).string()});
        };
        const Ran cpp = object("clang++-19", "-std=gnu++20", "p.cpp"), c = object("clang-19", "-std=gnu11", "c.c");
        EXPECT_EQ(cpp.status, 0) << cpp.err;
        EXPECT_EQ(c.status, 0) << c.err;
        const Ran linked = run({"clang++-19", (folder / "p.cpp.o").string(), (folder / "c.c.o").string(), "-L" + lib,
                                "-Wl,-rpath," + lib, "-lrove", "-o", program});
        EXPECT_EQ(linked.status, 0) << linked.err;
    };
    const auto bundled = [&](const std::string& cache) {
        const std::string packed = program + "." + cache;
        std::filesystem::copy_file(program, packed, std::filesystem::copy_options::overwrite_existing);
        const Ran ran = run({"env", "ROVE_CACHE=" + (folder / cache).string(), rove(), "bundle", packed});
        EXPECT_EQ(ran.status, 0) << ran.err;
        return contents_of(packed);
    };
    made(0);
    std::string before = bundled("kept");
    for (int edit = 1; edit <= 7; ++edit) {
        made(edit);
        const std::string warm = bundled("kept");
        EXPECT_FALSE(warm == before) << edit;
        EXPECT_TRUE(warm == bundled("cold" + std::to_string(edit))) << edit;
        before = warm;
    }
}
#endif

TEST(Forms, TakenOutOfTheBitcodeOnTheSpot) {
    const std::string cache = (scratch() / "cache").string();
    const NodeProcess node;
    for (int i = 0; i < 2; ++i)  // the second time out of the cache
        expect_all_is_well(
            run({"env", "ROVE_CACHE=" + cache, built("api_program_bitcode"), "call", node.address(), "shipped"}));
    EXPECT_FALSE(std::filesystem::is_empty(cache));
}

TEST(Forms, LambdasOfAnotherProgramTravel) {
    const Server server(built("api_program_resident"));  // has the functions, but is another build
    const Ran ran = run({built("api_program"), "call", server.address(), "shipped"});
    expect_all_is_well(ran);
}

// A node that has functions of its own is sent code when it asks for it. The second program's code it has by then: what it calls back
// is there without being sent.
TEST(Forms, AProgramIsCalledBackByANodeThatHasItsCodeFromAnother) {
    (void)scratch();  // the tests' own cookie
    offer(fn<double_it>);
    const Node server({.listen = "127.0.0.1:0"});
    expect_all_is_well(run({built("api_program"), "call", server.address(), "shipped"}));
    for (int i = 0; i < 2; ++i) expect_all_is_well(run({built("api_program"), "call", server.address()}));  // send none
}

TEST(Forms, FunctionsBuiltWithoutExceptionsTravel) {
    const NodeProcess node;
    for (const char* program : {"api_no_exceptions", "api_no_exceptions_bitcode"})
        expect_all_is_well(run({built(program), node.address()}));
}

TEST(Forms, WhatCannotTravelSaysWhy) {
    const NodeProcess node;
    const Ran ran = run({built("api_stays"), node.address()});
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_NE(ran.out.find("unsupported"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("it reaches the variable counter"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("back home 101\nand there unsupported: "), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("count cannot be sent: it reaches the variable counter"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("of a circle 41\n"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("thread-local variable"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("an inline thread_local variable that code initialises"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("it reaches the variable flag"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("kAligned is aligned to 8192 bytes"), std::string::npos) << ran.out;
    for (const char* name : {"made_early", "stays::made_later"}) {
        const std::size_t said = ran.out.find("it reaches the inline variable " + std::string(name));
        ASSERT_NE(said, std::string::npos) << name << ": " << ran.out;
        EXPECT_NE(ran.out.find("which has an init_priority", said), std::string::npos) << ran.out;
    }
    EXPECT_NE(ran.out.find("without state 4"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("own statics 1 2 3"), std::string::npos) << ran.out;
}

TEST(Forms, PackagesOfAnotherFormatAreNotTakenForNone) {
    const NodeProcess node;
    const std::filesystem::path program = scratch() / "other_format";
    std::ifstream stream(built("api_program"), std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(stream)), {});
    const std::size_t magic = bytes.find("ROVEBND2");
    ASSERT_NE(magic, std::string::npos);
    bytes.replace(magic, 8, "ROVEBND1");
    std::ofstream(program, std::ios::binary) << bytes;
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const Ran ran = run({program.string(), "call", node.address(), "shipped"});
    EXPECT_NE(ran.status, 0);
    EXPECT_NE((ran.out + ran.err)
                  .find("the packages of this program cannot be read: not a bundle of packages, or of another "
                        "version of Rove; link it again"),
              std::string::npos)
        << ran.out << ran.err;
}

TEST(Forms, AFunctionThatIsTooLargeForAnImageTravelsAsBitcode) {
    const NodeProcess node;
    const Ran ran = run({built("api_large"), node.address()});
    EXPECT_EQ(ran.out, "small 2\nlarge 5\n") << ran.err;
}

#ifdef ROVE_REFUSES_THREADS
// Taking it out of the program needs a thread, and the next call finds one.
TEST(Forms, WhatHasNoThreadToBeTakenOutTravelsLater) {
    const NodeProcess node;
    const Ran ran = run({built("api_refused_thread"), node.address()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out.substr(0, 11), "overloaded:") << ran.out;
    EXPECT_NE(ran.out.find("no thread for LLVM"), std::string::npos) << ran.out;
    EXPECT_EQ(ran.out.substr(ran.out.find('\n') + 1), "16\n") << ran.out;
}
#endif

// Shared libraries go along as names; static ones where they carry their bitcode.
TEST(Forms, FunctionsFindTheLibrariesOfTheirProgram) {
    for (const char* program : {"api_linked_images", "api_linked_bitcode"}) {
        const NodeProcess node;
        const Ran ran = run({built(program), node.address()});
        EXPECT_EQ(ran.status, 0) << ran.err;
        EXPECT_NE(ran.out.find("checksum 3610a686\n"), std::string::npos) << program << ": " << ran.out;
        EXPECT_NE(ran.out.find("embedded 104\n"), std::string::npos) << program << ": " << ran.out;
        EXPECT_NE(ran.out.find("in C 130\na static in C 8\nthe same static a\n"), std::string::npos)
            << program << ": " << ran.out;
        EXPECT_NE(ran.out.find("it reaches the variable of_the_file"), std::string::npos) << ran.out;
        EXPECT_NE(ran.out.find("linked4leftEi"), std::string::npos) << program << ": " << ran.out;
        EXPECT_NE(ran.out.find("vendored no symbol 'ZSTD_versionNumber'"), std::string::npos) << ran.out;
        const std::string lacks = std::string(program) == "api_linked_images"
                                      ? "the packages of this program do not have it"
                                      : "this program carries no bitcode of it";
        EXPECT_NE(ran.out.find(lacks + ": it comes from a static library without bitcode"), std::string::npos)
            << ran.out;
    }
    std::filesystem::copy_file(built("api_linked_bitcode"), scratch() / "linked",
                               std::filesystem::copy_options::overwrite_existing);
    const Ran strictly = run({rove(), "bundle", "--strict", (scratch() / "linked").string()});
    EXPECT_EQ(strictly.status, 1);
    EXPECT_NE(strictly.err.find("linked is left as it was: 3 warnings, with --strict"), std::string::npos)
        << strictly.err;
    const Ran bundled = run({rove(), "bundle", (scratch() / "linked").string()});
    EXPECT_EQ(bundled.status, 0) << bundled.err;
    EXPECT_NE(bundled.err.find("left needs '_ZN6linked4leftEi', which"), std::string::npos) << bundled.err;
    EXPECT_NE(bundled.err.find("vendored needs 'ZSTD_versionNumber', which"), std::string::npos) << bundled.err;
    std::size_t needs = 0;
    for (std::size_t at = 0; (at = bundled.err.find("needs '", at)) != std::string::npos; ++at) ++needs;
    EXPECT_EQ(needs, 2U) << bundled.err;
    const Ran again = run({rove(), "bundle", (scratch() / "linked").string()});
    EXPECT_EQ(again.status, 1);
    EXPECT_NE(again.err.find("have been packed already"), std::string::npos) << again.err;
}

TEST(Forms, WhatEveryNodeHasIsNoOtherLibrarysName) {
    const std::filesystem::path cache = scratch() / "cache";
    const auto ran_with = [&cache](const std::string& program, const NodeProcess& node, const std::string& preloaded) {
        std::filesystem::create_directory(cache);
        return run({"env", "LD_PRELOAD=" + preloaded, "ROVE_CACHE=" + cache.string(), built(program), node.address()});
    };
    // Linked with, and preloaded. Its own name is its own; what is kept for one program is not the other's, whose libraries differ.
    const NodeProcess node;
    for (const std::string form : {"images", "bitcode"}) {
        const Ran linked = ran_with("api_interposed_" + form, node, "");
        EXPECT_NE(linked.out.find("copied 5\n"), std::string::npos) << linked.out << linked.err;
        EXPECT_NE(linked.out.find("libapi_interposes.so cannot be opened"), std::string::npos) << linked.out;
        const std::string library = built("../lib/libapi_interposes.so");
        ASSERT_TRUE(std::filesystem::exists(library)) << library;
        for (const std::string& preloaded : {library, std::string()}) {
            const Ran ran = ran_with("api_linked_" + form, node, preloaded);
            EXPECT_NE(ran.out.find("copied 5\n"), std::string::npos) << ran.out << ran.err;
            EXPECT_NE(ran.out.find("checksum 3610a686\n"), std::string::npos) << ran.out << ran.err;
        }
    }
}

TEST(Forms, FunctionsWithThreadLocalsAndFuturesOfTheirOwnTravel) {
    std::string expected = "calls: 41\ncalls: 41 42\ncalls: 42\ncalls: 42\n42 11 10\n";
#if __has_feature(thread_sanitizer)  // no exception (threads.cpp)
    expected.replace(expected.size() - 6, 5, "10 10");
#endif
    for (const char* program : {"api_threads", "api_threads_bitcode"}) {
        for (const std::string forms : {"both", "bitcode", "image"}) {
            if (forms == "image" && std::string(program) == "api_threads_bitcode") continue;  // it sends none
            const NodeProcess node({"--forms", forms, "--threads", "1"});
            const Ran ran = run({built(program), node.address()});
            EXPECT_EQ(ran.status, 0) << program << " as " << forms << ": " << ran.out << ran.err;
            EXPECT_EQ(ran.out, expected) << program << " as " << forms << ": " << ran.err;
        }
    }
}

#ifdef ROVE_HAS_OWN_NEW
TEST(Forms, FunctionsOfAProgramWithItsOwnOperatorNewUseTheNodes) {
    for (const std::string program : {"api_own_new", "api_own_new_bitcode"}) {
        for (const std::string forms : {"both", "bitcode"}) {
            const NodeProcess node({"--forms", forms});
            for (int client = 0; client < 2; ++client) {
                const std::string cache = (scratch() / (program + forms + std::to_string(client))).string();
                // LeakSanitizer does not see pointers to what lies behind a block's first bytes, as this program's are.
                const Ran ran =
                    run({"env", "ASAN_OPTIONS=detect_leaks=0", "ROVE_CACHE=" + cache, built(program), node.address()});
                EXPECT_EQ(ran.status, 0) << program << " as " << forms << ": " << ran.out << ran.err;
                EXPECT_EQ(ran.out, "1 and so on to 3 and so on to 6 and so on to the end, as here\n") << ran.err;
            }
            EXPECT_EQ(run({rove(), "functions", node.address()}).status, 0) << "the node lives";
        }
    }
}

TEST(Forms, BundleSaysOnceThatTheNodesOperatorNewIsUsed) {
    const std::string copy = (scratch() / "own_new").string();
    std::filesystem::copy_file(built("api_own_new_bitcode"), copy);
    const Ran ran = run({rove(), "bundle", copy});
    EXPECT_EQ(ran.status, 0) << ran.err;
    const std::string said = " replaced in this program: what travels uses the node's";
    const std::size_t at = ran.err.find(said);
    ASSERT_NE(at, std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("operator new(unsigned long)"), std::string::npos) << ran.err;
    EXPECT_EQ(ran.err.find(said, at + 1), std::string::npos) << ran.err;
}
#endif

// The dynamic linker tells where a program's libraries are, and would run what audits it.
TEST(Forms, BundleRunsNothingOfTheProgram) {
    const std::string folder = scratch().string(), ran_file = folder + "/it_ran", program = folder + "/audited";
    std::ofstream(folder + "/audits.c") << "#include <fcntl.h>\nunsigned la_version(unsigned v) { open(\"" << ran_file
                                        << "\", O_CREAT | O_WRONLY, 0600); return v; }\n";
    std::ofstream(folder + "/audited.cpp") << "int main() {}\n";
    const std::string library = folder + "/libaudits.so";
    ASSERT_EQ(run({"clang-19", "-shared", "-fPIC", "-o", library, folder + "/audits.c"}).status, 0);
    ASSERT_EQ(run({"clang++-19", "-Xclang", "-fembed-bitcode=all", "-Wl,--audit=" + library, "-o", program,
                   folder + "/audited.cpp"})
                  .status,
              0);
    const Ran bundled = run({rove(), "bundle", program});
    EXPECT_EQ(bundled.status, 0) << bundled.err;
    EXPECT_FALSE(std::filesystem::exists(ran_file));
    EXPECT_EQ(run({program}).status, 0);
    EXPECT_TRUE(std::filesystem::exists(ran_file)) << "the linker runs it where the program is run";
}

// Two files that go by one name. What only one of them has is found.
TEST(Forms, FunctionsUnderAPrecompiledHeaderTravel) {
    for (const char* program : {"api_precompiled_images", "api_precompiled_bitcode"}) {
        const NodeProcess node;
        const Ran ran = run({built(program), node.address()});
        EXPECT_EQ(ran.status, 0) << program << ": " << ran.err;
        EXPECT_EQ(ran.out, "lambda 11\nstatic 21\nnamed 31\ntoo 42\n") << program;
    }
    std::filesystem::copy_file(built("api_precompiled_twice"), scratch() / "twice",
                               std::filesystem::copy_options::overwrite_existing);
    const Ran bundled = run({rove(), "bundle", (scratch() / "twice").string()});
    EXPECT_EQ(bundled.status, 1) << bundled.err;
    EXPECT_NE(bundled.err.find("twice would end at its start: several of its source files have a function that is "
                               "called same"),
              std::string::npos)
        << bundled.err;
    const Ran begun = run({built("api_precompiled_twice")});
    EXPECT_NE(begun.err.find("two functions of this program have one id"), std::string::npos) << begun.err;
}

TEST(Forms, VariablesThatASanitizerAddsAreNamedByTheirReason) {
    const NodeProcess node;
    const Ran ran = run({built("api_undefined"), node.address()});
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_NE(ran.out.find("unsupported"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("made by -fsanitize=undefined"), std::string::npos) << ran.out;
}

TEST(Forms, AnInstrumentedProgramsFunctionsTravelWithoutItsCounters) {
    for (const std::string forms : {"both", "bitcode", "image"}) {
        const NodeProcess node({"--forms", forms});
        for (int client = 0; client < 2; ++client) {
            const Ran ran = run({"env", "LLVM_PROFILE_FILE=/dev/null", built("api_instrumented"), node.address()});
            EXPECT_EQ(ran.status, 0) << forms << ": " << ran.out << ran.err;
            EXPECT_EQ(ran.out, "abab 49\n") << forms;
        }
        EXPECT_EQ(run({rove(), "functions", node.address()}).status, 0) << "the node lives";
    }
}

TEST(Forms, OtherTypesAreFoundOutBeforeAnythingRuns) {
    const Server server(built("api_program"));
    const Ran resident = run({built("api_other_types_resident"), server.address()});
    EXPECT_EQ(resident.out.substr(0, 8), "invalid:") << resident.out << resident.err;
    EXPECT_NE(resident.out.find("forms::cheaper"), std::string::npos) << resident.out;
    EXPECT_NE(resident.out.find("schema"), std::string::npos) << resident.out;
    const std::size_t second = resident.out.find("\ninvalid:");
    ASSERT_NE(second, std::string::npos) << "members of other types in a struct as large: " << resident.out;
    EXPECT_NE(resident.out.find("forms::scaled", second), std::string::npos) << resident.out;
    // What carries its code is not held up by it: its own is run.
    const Ran shipped = run({built("api_other_types"), server.address()});
    EXPECT_EQ(shipped.out, "pear 1 2\n2\n") << shipped.err;
}

// Two builds of a program, say: theirs runs, which says so once, or exactly the caller's.
TEST(Forms, OneOfOtherCodeIsTheirsOrExactlyMine) {
    const Server server(built("api_program"));
    const Ran shipped = run({built("api_other_types"), server.address(), "square"});
    EXPECT_EQ(shipped.out, "theirs 9 16\nexactly mine 27 64\n") << shipped.err;
    const std::string log = server.log();
    const std::size_t said = log.find("runs its own forms::square");
    EXPECT_NE(said, std::string::npos) << log;
    EXPECT_EQ(log.find("runs its own forms::square", said + 1), std::string::npos) << "once: " << log;
    const Ran same = run({built("api_program"), "call", server.address(), "resident"});
    expect_all_is_well(same);
    EXPECT_EQ(server.log(), log) << "its own code";
    const Ran resident = run({built("api_other_types_resident"), server.address(), "square"});
    EXPECT_EQ(resident.out.substr(0, 14), "theirs 9 16\nun") << resident.out << resident.err;
}

// The same source, by the same compiler, packed otherwise.
TEST(Forms, OneInAnotherFormIsNotOfOtherCode) {
    const Server server(built("api_program"));
    // Lambdas travel, where the linker has not made the same file of both programs.
    expect_all_is_well(run({built("api_program_bitcode"), "call", server.address(), "either"}));
    EXPECT_EQ(server.log().find("runs its own"), std::string::npos) << server.log();
}

TEST(Forms, TwoFunctionsWithOneIdEndTheProgram) {
    const Ran ran = run({built("api_twice")});
    EXPECT_EQ(ran.status, 128 + SIGABRT);
    EXPECT_NE(ran.err.find("two functions of this program have one id"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("rove::named"), std::string::npos) << ran.err;
}

#ifdef ROVE_HAS_GXX_PROGRAM
TEST(Forms, ResidentInAProgramOfAnotherCompiler) {
    const Server server(built("api_program_gxx"));
    expect_all_is_well(run({built("api_program_resident"), "call", server.address(), "no-lambdas"}));
    expect_all_is_well(run({built("api_program_gxx"), "call", server.address(), "resident"}));
}

TEST(Forms, TheOtherWayRound) {
    const Server server(built("api_program"));
    expect_all_is_well(run({built("api_program_gxx"), "call", server.address(), "no-lambdas"}));
}
#endif

}  // namespace
}  // namespace rove::test
