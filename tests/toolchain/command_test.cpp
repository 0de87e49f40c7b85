// rove build and rove inspect as a user meets them.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "workshop.hpp"

namespace rove::toolchain {
namespace {

class CommandTest : public Workshop {
protected:
    void SetUp() override {
        Workshop::SetUp();
        const char* build = std::getenv("ROVE_BUILD_DIR");
        ASSERT_NE(build, nullptr);
        rove_ = std::string(build) + "/bin/rove";
        source_ =
            write("hello.c", "#include <rove/rove.h>\n" + entry("hello", "rove_reply(here, \"hi\", 2);")).string();
        output_ = (folder() / "hello.rove").string();
    }
    Ran rove(std::vector<std::string> words) {
        words.insert(words.begin(), rove_);
        return run_command(words);
    }

    std::string rove_, source_, output_;
};

TEST_F(CommandTest, BuildsAndInspects) {
    const Ran built = rove({"build", source_, "-o", output_, "--dep", "libz.so.1"});
    ASSERT_EQ(built.status, 0) << built.out;
    const Ran shown = rove({"inspect", output_, "--json"});
    ASSERT_EQ(shown.status, 0) << shown.out;
    const auto json = nlohmann::ordered_json::parse(shown.out, nullptr, false);
    ASSERT_TRUE(json.is_object()) << shown.out;
    std::vector<std::string> keys;
    for (const auto& [key, value] : json.items()) keys.push_back(key);
    EXPECT_EQ(keys, (std::vector<std::string>{"name", "abi", "digest", "interface", "pinned", "entries", "targets",
                                              "exports", "imports", "weak_imports", "dependencies"}));
    EXPECT_EQ(json["pinned"], false);
    const auto package = PackageStore::open(output_);
    ASSERT_TRUE(package);
    EXPECT_EQ(json["digest"], (*package)->digest().hex());
    EXPECT_EQ(json["entries"][0]["id"], (*package)->function_ids()[0].hex());
    ASSERT_EQ(json["targets"].size(), 2U);
    EXPECT_EQ(json["targets"][0]["forms"].size(), 2U);
    EXPECT_EQ(json["dependencies"], nlohmann::ordered_json({"libz.so.1"}));
}

// The compiler waits for the file that it includes.
TEST_F(CommandTest, ASignalLeavesNoFilesBehind) {
    const std::string temporary = (folder() / "temporary").string(), waited = (folder() / "waited.h").string();
    ASSERT_TRUE(std::filesystem::create_directory(temporary));
    ASSERT_EQ(mkfifo(waited.c_str(), 0600), 0);
    const std::string source = write("waits.c", "#include \"waited.h\"\n").string();
    for (const std::string signal : {"TERM", "HUP"}) {
        const Ran ended = run_command({"env", "TMPDIR=" + temporary, "bash", "-c",
                                       "'" + rove_ + "' build '" + source + "' -o '" + output_ + "' & pid=$!\n" +
                                           "for ((i = 0; i < 1000; ++i)); do [[ $(ls -A '" + temporary +
                                           "') == *rove-build-* ]] && break; sleep 0.01; done\n" + "ls -A '" +
                                           temporary + "'; sleep 0.2; kill -" + signal + " $pid; wait $pid"});
        EXPECT_NE(ended.out.find("rove-build-"), std::string::npos) << ended.out;
        EXPECT_EQ(ended.status, 128 + (signal == "TERM" ? SIGTERM : SIGHUP)) << ended.out;
        EXPECT_TRUE(std::filesystem::is_empty(temporary)) << ended.out;
    }
}

// Nor does one while LLVM works in the process itself: for most of a minute on this source, and it asks nobody whether to go on.
TEST_F(CommandTest, ASignalEndsWhatLlvmTakesLongFor) {
    const std::string temporary = (folder() / "temporary").string();
    ASSERT_TRUE(std::filesystem::create_directory(temporary));
    std::string steps;
    for (int i = 0; i < 10'000; ++i) steps += fmt::format("x = x * 31u + v[{}]; x ^= x >> 3;\n", i);
    const std::string source = write("steps.c",
                                     "#include <rove/rove.h>\nROVE_ENTRY void go(rove_here *h, const void *p, "
                                     "size_t n) {\nconst unsigned *v = p; unsigned x = (unsigned)n;\n" +
                                         steps + "rove_reply(h, &x, sizeof x); }\n")
                                   .string();
    const Ran ended = run_command(
        {"env", "TMPDIR=" + temporary, "bash", "-c",
         "'" + rove_ + "' build '" + source + "' -o '" + output_ +
             "' & pid=$!; until pgrep -P $pid > /dev/null; do sleep 0.01; done; while pgrep -P $pid > /dev/null; do "
             "sleep "
             "0.05; done; sleep 0.5; ls -A '" +
             temporary +
             "'; kill -TERM $pid; SECONDS=0; wait $pid; ended=$?; ((SECONDS < 10)) || echo late; exit $ended"});
    EXPECT_NE(ended.out.find("rove-build-"), std::string::npos) << ended.out;
    EXPECT_EQ(ended.out.find("late"), std::string::npos) << ended.out;
    EXPECT_EQ(ended.status, 128 + SIGTERM) << ended.out;
    EXPECT_TRUE(std::filesystem::is_empty(temporary)) << ended.out;
}

TEST_F(CommandTest, OneTargetWhenAsked) {
    ASSERT_EQ(rove({"build", source_, "-o", output_, "--target", std::string(kArm)}).status, 0);
    const auto json = nlohmann::json::parse(rove({"inspect", output_, "--json"}).out, nullptr, false);
    ASSERT_EQ(json["targets"].size(), 1U);
    EXPECT_EQ(json["targets"][0]["triple"], kArm);
}

TEST_F(CommandTest, WrongUsageIsTwoAndErrorsAreOne) {
    EXPECT_EQ(rove({}).status, 2);
    EXPECT_EQ(rove({"bulid"}).status, 2);
    EXPECT_EQ(rove({"build"}).status, 2);
    EXPECT_EQ(rove({"build", source_}).status, 2) << "no output";
    for (const auto& wrong : {std::vector<std::string>{"build", source_}, {"bundle", "nofile"}, {"bulid"}}) {
        const Ran said = rove(wrong);
        EXPECT_EQ(said.status, 2);
        EXPECT_TRUE(said.out.starts_with("rove: ")) << said.out;
    }
    EXPECT_EQ(rove({"inspect"}).status, 2);
    EXPECT_EQ(rove({"--version"}).status, 0);
    EXPECT_EQ(rove({"build", "--help"}).status, 0);
    EXPECT_EQ(rove({"build", source_, "-o", output_, "--target", "pdp11-linux-gnu"}).status, 1);
    const Ran missing = rove({"inspect", (folder() / "none.rove").string()});
    EXPECT_EQ(missing.status, 1);
    EXPECT_TRUE(missing.out.starts_with("rove: ")) << missing.out;
}

TEST_F(CommandTest, AFlagOutsideItsChoicesIsToldInTheWordsOfNodeOptions) {
    const Ran loud = rove({"node", "--listen", "127.0.0.1:0", "--log", "loud"});
    EXPECT_EQ(loud.status, 2) << loud.out;
    EXPECT_NE(loud.out.find("option log is 'loud', which is none of its choices: trace, debug, info, warn, error, off"),
              std::string::npos)
        << loud.out;
    const Ran few = rove({"node", "--listen", "127.0.0.1:0", "--known-packages", "0"});
    EXPECT_EQ(few.status, 2) << few.out;
    EXPECT_LT(few.out.size(), 100U) << few.out;
    const Ran none = rove({"node", "--listen", "127.0.0.1:0", "--threads", "0"});
    EXPECT_EQ(none.status, 2) << none.out;
    EXPECT_NE(none.out.find("option threads is 0: a node has 1 to 64 threads of its own"), std::string::npos)
        << none.out;
    for (const char* const engines : {"0", "65"}) {
        const Ran wrong = rove({"node", "--listen", "127.0.0.1:0", "--engines", engines});
        EXPECT_EQ(wrong.status, 2) << wrong.out;
        EXPECT_NE(wrong.out.find("a node has 1 to 64 engines, or auto"), std::string::npos) << wrong.out;
    }
    const Ran word = rove({"node", "--listen", "127.0.0.1:0", "--engines", "two"});
    EXPECT_EQ(word.status, 2) << word.out;
    EXPECT_NE(word.out.find("'two' is no number of engines, and not 'auto'"), std::string::npos) << word.out;
}

TEST_F(CommandTest, HelpSpeaksOfCalls) {
    const Ran help = rove({"call", "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_NE(help.out.find("Call a function of a package"), std::string::npos) << help.out;
    EXPECT_EQ(help.out.find("RawCall"), std::string::npos) << help.out;
}

TEST_F(CommandTest, AnAlteredPackageIsRefused) {
    ASSERT_EQ(rove({"build", source_, "-o", output_}).status, 0);
    ByteBuffer file = *read_file(output_);
    file.back() ^= std::byte{1};
    ASSERT_TRUE(write_file(output_, file));
    const Ran altered = rove({"inspect", output_});
    EXPECT_EQ(altered.status, 1) << altered.out;
    file.resize(file.size() / 2);
    ASSERT_TRUE(write_file(output_, file));
    EXPECT_EQ(rove({"inspect", output_}).status, 1);
}

TEST_F(CommandTest, AResultThatCannotBeWrittenIsAFailure) {
    ASSERT_EQ(rove({"build", source_, "-o", output_}).status, 0) << "prints nothing, so needs no output";
    for (const char* what : {"inspect \"$1\"", "inspect --json \"$1\"", "--help", "call --help", "--version"}) {
        const Ran full = run_command({"sh", "-c", "exec \"$0\" " + std::string(what) + " > /dev/full", rove_, output_});
        EXPECT_EQ(full.status, 1) << what;
        EXPECT_TRUE(full.out.starts_with("rove: the output cannot be written")) << full.out;
    }
    const Ran closed = run_command({"sh", "-c", "exec \"$0\" inspect \"$1\" >&-", rove_, output_});
    EXPECT_EQ(closed.status, 1);
    EXPECT_TRUE(mentions(closed.out, "the output cannot be written: Bad file descriptor")) << closed.out;
    EXPECT_EQ(run_command({"sh", "-c", "exec \"$0\" bulid > /dev/full", rove_}).status, 2);
    EXPECT_EQ(
        run_command({"sh", "-c", "exec \"$0\" build \"$1\" -o \"$2\" > /dev/full", rove_, source_, output_}).status, 0);
}

TEST_F(CommandTest, APackageTakesNothingsPlaceButAFiles) {
    namespace fs = std::filesystem;
    ASSERT_EQ(rove({"build", source_, "-o", output_, "--target", std::string(kX86)}).status, 0);
    const ByteBuffer whole = *read_file(output_);
    const fs::path link = folder() / "link", fifo = folder() / "fifo", dangling = folder() / "dangling";
    ASSERT_TRUE(write_file(output_, as_bytes("old")));
    fs::create_symlink(output_, link);
    const Ran through = rove({"build", source_, "-o", link.string(), "--target", std::string(kX86)});
    EXPECT_EQ(through.status, 0) << through.out;
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(*read_file(output_), whole);

    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    fs::create_symlink(folder() / "nowhere", dangling);
    const auto refused = [&](const fs::path& path, const char* why) {
        const Ran ran = rove({"build", source_, "-o", path.string(), "--target", std::string(kX86)});
        EXPECT_EQ(ran.status, 1) << ran.out;
        EXPECT_EQ(ran.out, "rove: cannot write " + path.string() + ": " + why + "\n");
    };
    refused(fifo, "it is there and is no regular file");
    EXPECT_TRUE(fs::is_fifo(fifo));
    refused(folder(), "it is there and is no regular file");
    refused(dangling, "it is a link to a file that is not there");
    EXPECT_TRUE(fs::is_symlink(dangling));
    for (const fs::directory_entry& each : fs::directory_iterator(folder()))
        EXPECT_EQ(each.path().string().find(".part"), std::string::npos) << each.path();
}

// Others may be able to write in the folder, and know the names of temporaries.
TEST_F(CommandTest, APackageIsNotWrittenThroughALinkThatOthersHavePutThere) {
    const std::filesystem::path victim = folder() / "victim";
    ASSERT_TRUE(write_file(victim, as_bytes("its own")));
    const Ran built =
        run_command({"sh", "-c",
                     "for i in '' .0 .1 .2; do ln -s \"$3\" \"$2.$$$i.part\"; done; exec \"$0\" build \"$1\" -o \"$2\" "
                     "--target x86_64-linux-gnu",
                     rove_, source_, output_, victim.string()});
    EXPECT_EQ(built.status, 0) << built.out;
    EXPECT_EQ(*read_file(victim), ByteBuffer(as_bytes("its own").begin(), as_bytes("its own").end()));
    EXPECT_FALSE(std::filesystem::is_symlink(output_));
    EXPECT_TRUE(PackageStore::open(output_));
}

// A function is called by PACKAGE:FUNCTION, and both are printed.
TEST_F(CommandTest, APackagesNameIsOneThatCanBeCalled) {
    for (const char* name : {"a\nb", "a b", "a:b", "a/b", "a\"b", "a\\b", "\x80"}) {
        const Ran built = rove({"build", source_, "-o", output_, "--name", name});
        EXPECT_EQ(built.status, 1) << built.out;
        EXPECT_TRUE(mentions(built.out, "cannot be a package's name")) << built.out;
        EXPECT_EQ(std::ranges::count(built.out, '\n'), 1) << built.out;
    }
    EXPECT_EQ(rove({"build", source_, "-o", output_, "--name", ""}).status, 2);
    const Ran spaced = rove({"build", write("hello there.c", "").string(), "-o", output_});
    EXPECT_TRUE(mentions(spaced.out, "'hello there' cannot be a package's name")) << spaced.out;
}

TEST_F(CommandTest, AFullFolderForTemporaryFilesIsNamed) {
    const std::string full = (folder() / "full").string();
    ASSERT_TRUE(std::filesystem::create_directory(full));
    const Ran built = run_command({"unshare", "--map-root-user", "--mount", "sh", "-c",
                                   "mount -t tmpfs -o size=4k full \"$0\" && TMPDIR=$0 \"$1\" build \"$2\" -o \"$3\"; "
                                   "status=$?; ls -A \"$0\"; exit $status",
                                   full, rove_, source_, output_});
    EXPECT_EQ(built.status, 1);
    EXPECT_EQ(built.out,
              "rove: " + source_ + " cannot be compiled: there is no room in " + full + "; make some, or set TMPDIR\n");
}

TEST_F(CommandTest, AMissingCompilerNamesItsDebianPackage) {
    const Ran built = run_command({"env", "PATH=" + folder().string(), rove_, "build", source_, "-o", output_});
    EXPECT_EQ(built.status, 1);
    EXPECT_TRUE(mentions(built.out, "install the Debian package clang-19")) << built.out;
    EXPECT_FALSE(std::filesystem::exists(output_));
}

}  // namespace
}  // namespace rove::toolchain
