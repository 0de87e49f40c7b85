// The messages of `rove bundle` about a program, and the parts of a program that it must not change.
#include <gtest/gtest.h>

#include <filesystem>

#include "../node/process.hpp"

namespace rove::test {
namespace {

TEST(Forms, BundleNamesTheStaticsThatTheProgramChangesForItself) {
    std::filesystem::copy_file(built("api_changes_statics"), scratch() / "program",
                               std::filesystem::copy_options::overwrite_existing);
    const Ran bundled = run({rove(), "bundle", (scratch() / "program").string()});
    EXPECT_EQ(bundled.status, 0) << bundled.err;
    const std::string& said = bundled.err;
    for (const char* name :
         {"'changed::begun'", "'changed::key'", "'changed::written'", "'changed::worker'", "'changed::recursive'",
          "'changed::level'", "'changed::registered'", "'changed::Tally<int>::kept'", "'changed::counted()::calls'",
          "'changed::shard()::entries'", "'changed::buffer()::bytes'", "'changed::prices()::of_things'",
          "'changed::Settings::instance()::settings'", " changes ",
          ", which functions that it sends use: on each node they begin with their first values"})
        EXPECT_NE(said.find(name), std::string::npos) << name << " in " << said;
    EXPECT_EQ(said.find("left::"), std::string::npos) << said;
    EXPECT_EQ(said.find("std::__"), std::string::npos) << "the library's own: " << said;
    EXPECT_EQ(said.find("cereal::"), std::string::npos) << "cereal's own: " << said;
    EXPECT_EQ(said.find(" changes "), said.rfind(" changes ")) << "once: " << said;
}

TEST(Forms, BundleNamesTheStaticsThatAreChangedThroughIteratorsAndCopies) {
    for (const std::string program : {"api_follows_statics", "api_follows_statics_checked"}) {
        std::filesystem::copy_file(built(program), scratch() / program);
        const Ran bundled = run({rove(), "bundle", (scratch() / program).string()});
        EXPECT_EQ(bundled.status, 0) << bundled.err;
        for (const char* name :
             {"'changed::sorted()::by_iterators'", "'changed::looped()::by_a_loop'", "'changed::first()::by_front'",
              "'changed::moved()::by_a_moved_iterator'", "'changed::raw()::by_a_copy'",
              "'changed::span()::by_a_copied_span'", "'changed::beside_views'", "'changed::owner()::of_what_changes'"})
            EXPECT_NE(bundled.err.find(name), std::string::npos) << name << " in " << bundled.err;
        EXPECT_EQ(bundled.err.find("left::"), std::string::npos) << bundled.err;
        EXPECT_EQ(bundled.err.find(" more"), std::string::npos) << "all are named: " << bundled.err;
    }
}

#ifdef ROVE_IS_PLAIN
TEST(Forms, FunctionsTakeTheProgramsOwnFunctionsOfTheCLibraryAlongAndBundleSaysWhichOnesStay) {
    for (const std::string program : {"api_own_library_images", "api_own_library_bitcode"})
        for (const std::string forms : {"bitcode", "both"}) {
            const NodeProcess node({"--forms", forms});
            const Ran ran = run({built(program), node.address()});
            EXPECT_EQ(ran.out, "-2 a few words, and more of them 2, here 1002.5\n")
                << program << " as " << forms << ": " << ran.err;
        }
    const std::string copy = (scratch() / "own_library").string();
    std::filesystem::copy_file(built("api_own_library_bitcode"), copy);
    const Ran bundled = run({rove(), "bundle", copy});
    EXPECT_EQ(bundled.status, 0) << bundled.err;
    EXPECT_EQ(bundled.err, "rove: floor, memcpy are replaced in this program: what travels uses the node's\n");
}
#endif

TEST(Forms, BundleSaysWhereItCannotKeepWhatItMakesAndLeavesAProgramsRightsAsTheyAre) {
    const std::filesystem::path program = scratch() / "unkept";
    std::filesystem::copy_file(built("api_follows_statics"), program);
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const Ran bundled = run({"env", "ROVE_CACHE=/proc/nowhere", rove(), "bundle", program.string()});
    EXPECT_EQ(bundled.status, 0) << "it is no failure";
    EXPECT_NE(bundled.err.find("next time: nothing can be written in /proc/nowhere"), std::string::npos) << bundled.err;
    EXPECT_EQ(std::filesystem::status(program).permissions(), std::filesystem::perms::owner_all);
}

TEST(Forms, BundleNamesAFullFolderForTemporaryFiles) {
    const std::filesystem::path program = scratch() / "homeless", full = scratch() / "full";
    std::filesystem::copy_file(built("api_follows_statics"), program);
    std::filesystem::create_directory(full);
    for (const std::string size : {"4k", "64k"}) {  // too small for what is linked; for what the linker makes of it
        const Ran bundled = run({"unshare", "--map-root-user", "--mount", "env", "TMPDIR=" + full.string(),
                                 "ROVE_CACHE=" + (scratch() / "none").string(), "sh", "-c",
                                 "mount -t tmpfs -o size=" + size + " full \"$TMPDIR\" && \"$0\" bundle \"$1\"", rove(),
                                 program.string()});
        EXPECT_EQ(bundled.status, 1) << size;
        EXPECT_NE(bundled.err.find("there is no room in " + full.string() + "; make some, or set TMPDIR"),
                  std::string::npos)
            << size << ": " << bundled.err;
    }
}

}  // namespace
}  // namespace rove::test
