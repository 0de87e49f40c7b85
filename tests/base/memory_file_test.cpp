// Which files of another process may be mapped.
#include "base/memory_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/descriptor.hpp"

namespace rove {
namespace {

constexpr std::size_t kBytes = 4UL * 1024 * 1024;  // as many as huge pages have

Descriptor file(int seals) {
    Descriptor made(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_TRUE(made.is_open() && grow_file(made.number(), kBytes));
    EXPECT_EQ(fcntl(made.number(), F_ADD_SEALS, seals), 0);
    return made;
}

TEST(MemoryFile, IsFixedWhereNobodyCanChangeItsSize) {
    const Descriptor made(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_TRUE(grow_file(made.number(), kBytes));
    EXPECT_FALSE(is_fixed_memory(made.number(), kBytes));
    ASSERT_TRUE(fix_size(made.number()));
    EXPECT_TRUE(is_fixed_memory(made.number(), kBytes));
    EXPECT_FALSE(is_fixed_memory(made.number(), kBytes - 1));
    EXPECT_FALSE(grow_file(made.number(), kBytes + 1));
    EXPECT_FALSE(is_fixed_memory(file(F_SEAL_GROW | F_SEAL_SEAL).number(), kBytes)) << "it may shrink";
    EXPECT_FALSE(is_fixed_memory(file(F_SEAL_SHRINK | F_SEAL_SEAL).number(), kBytes)) << "it may grow";
    EXPECT_FALSE(is_fixed_memory(-1, kBytes));
}

TEST(MemoryFile, OfHugePagesIsRefused) {
    const Descriptor huge(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
    if (!huge.is_open()) return;  // a kernel without huge pages: no peer can offer such a file
    ASSERT_TRUE(grow_file(huge.number(), kBytes) && fix_size(huge.number()));
    EXPECT_FALSE(is_fixed_memory(huge.number(), kBytes));
}

}  // namespace
}  // namespace rove
