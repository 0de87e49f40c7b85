// A node's cookie: read once, and again only where that failed.
#include "control/own_cookie.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

namespace rove::test {
namespace {

TEST(OwnCookie, IsReadOnceUnlessThatFails) {
    std::string folder = testing::TempDir() + "rove-cookie-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const std::filesystem::path path = std::filesystem::path(folder) / "cookie";
    std::ofstream(path) << "too short";
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    control::OwnCookie cookie(path);
    EXPECT_EQ(cookie.path(), path);
    EXPECT_FALSE(cookie.get());
    std::filesystem::remove(path);
    const auto made = cookie.get();
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_TRUE(std::filesystem::exists(path));
    std::filesystem::remove(path);
    const auto again = cookie.get();
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, *made);
    EXPECT_FALSE(std::filesystem::exists(path)) << "it was not asked for again";
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace rove::test
