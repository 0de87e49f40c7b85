// Executable memory where the machine gives none: what was taken by then is given back, and giving back takes none.
#include "code/pool.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../watched_new.hpp"

namespace {

unsigned refused_in = 0;  // counts down with each allocation: the one that makes it 0 is refused; 0: none is
bool all_refused = false;
int refused_protection = 0;  // of mappings that are refused; 0: none is

}  // namespace

// In place of the C library's, for the whole process.
extern "C" void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
    if (protection == refused_protection) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

void rove::test::asked_for(std::size_t /*bytes*/) {
    if (all_refused || (refused_in > 0 && --refused_in == 0)) throw std::bad_alloc();
}

namespace rove::code {
namespace {

std::size_t open_descriptors() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
}
std::size_t mappings_of_code() {
    std::size_t count = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find("rove-code") != std::string::npos) ++count;
    return count;
}

class PoolTest : public testing::Test {
protected:
    void TearDown() override {
        refused_protection = 0;
        refused_in = 0;
        all_refused = false;
    }
    // Of an allocation, which must have left nothing open or mapped.
    ErrorCode refusal() {
        const std::size_t before = open_descriptors();
        const auto piece = pool_.allocate(100);
        EXPECT_EQ(open_descriptors(), before);
        EXPECT_EQ(mappings_of_code(), 0U);
        return piece ? ErrorCode::internal : piece.error().code();
    }
    CodePool pool_;
};

TEST_F(PoolTest, AFileThatCannotGrowIsClosed) {
    rlimit most{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &most), 0);
    rlimit little = most;
    little.rlim_cur = 1024 * 1024;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
    EXPECT_EQ(refusal(), ErrorCode::overloaded);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &most), 0);
    EXPECT_TRUE(pool_.allocate(100));
}

TEST_F(PoolTest, WhereOneViewCannotBeMappedTheOtherDoesNotStay) {
    refused_protection = PROT_READ | PROT_WRITE;
    EXPECT_EQ(refusal(), ErrorCode::overloaded);
    refused_protection = PROT_READ | PROT_EXEC;
    EXPECT_EQ(refusal(), ErrorCode::refused);
    refused_protection = 0;
    EXPECT_TRUE(pool_.allocate(100));
}

constexpr std::size_t kPage = 4096, kChunk = 16UL * 1024 * 1024;

TEST_F(PoolTest, PiecesGoBackWithoutMemory) {
    std::vector<CodePool::Piece> pieces;
    for (int i = 0; i < 9; ++i) pieces.push_back(std::move(*pool_.allocate(kPage)));
    const std::byte* const first = pieces.front().executable();
    all_refused = true;
    for (std::size_t i = 0; i < pieces.size(); i += 2) CodePool::Piece gone(std::move(pieces[i]));
    for (std::size_t i = 1; i < pieces.size(); i += 2) CodePool::Piece gone(std::move(pieces[i]));
    all_refused = false;
    const auto all = pool_.allocate(kChunk);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->executable(), first) << "a range of it was lost";
}

TEST_F(PoolTest, AnAllocationThatFindsNoMemoryLosesNoRange) {
    const std::byte* const first = pool_.allocate(kPage)->executable();
    unsigned refused = 1;
    for (bool in_want = true; in_want; ++refused) {
        ASSERT_LT(refused, 20U);
        refused_in = refused;
        try {
            (void)pool_.allocate(kPage);
        } catch (const std::bad_alloc&) {
        }
        in_want = std::exchange(refused_in, 0) == 0;
    }
    EXPECT_GT(refused, 2U);
    const auto all = pool_.allocate(kChunk);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->executable(), first);
}

}  // namespace
}  // namespace rove::code
