#include "base/loaded_file.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "base/own_library.hpp"

namespace rove {
namespace {

TEST(LoadedFile, IsTheOneThatAnAddressBelongsTo) {
    const LoadedFile program = loaded_file_of(reinterpret_cast<const void*>(&loaded_file_of));
    EXPECT_EQ(program.path, "/proc/self/exe");
    const LoadedFile libc = loaded_file_of(dlsym(RTLD_DEFAULT, "malloc_info"));
    EXPECT_NE(libc.path.find("libc.so"), std::string::npos) << libc.path;
    EXPECT_EQ(libc.build_id.size(), 20U) << "of SHA-1, as Debian's are";
    EXPECT_NE(libc.build_id, program.build_id);
    const int nowhere = 0;
    EXPECT_EQ(loaded_file_of(&nowhere).path, "");
    EXPECT_EQ(loaded_file_of(nullptr).path, "");
}

TEST(LoadedFile, ABuildIsWrittenInHexadecimal) {
    const std::string build = build_of(dlsym(RTLD_DEFAULT, "malloc_info"));
    EXPECT_EQ(build.size(), 40U);
    EXPECT_EQ(build.find_first_not_of("0123456789abcdef"), std::string::npos) << build;
    const int nowhere = 0;
    EXPECT_EQ(build_of(&nowhere), "");
}

}  // namespace
}  // namespace rove
