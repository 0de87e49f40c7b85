// Names that peers choose, in tables.
#include "base/name_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace rove::test {
namespace {

// A peer can reckon which names the standard library's hash puts into one bucket.
TEST(NameMap, NamesChosenForOneBucketAreSpread) {
    constexpr std::size_t kNames = 2000, kBuckets = 8191;
    NameMap<int> map(kBuckets);
    for (std::string name(4, '!'); map.size() < kNames;) {
        if (std::hash<std::string>()(name) % map.bucket_count() == 0) map.emplace(name, 0);
        for (char& letter : name) {
            if (++letter < 0x7F) break;
            letter = '!';
        }
    }
    std::size_t largest = 0;
    for (std::size_t bucket = 0; bucket < map.bucket_count(); ++bucket)
        largest = std::max(largest, map.bucket_size(bucket));
    EXPECT_LT(largest, 20U);
}

}  // namespace
}  // namespace rove::test
