// The table of peers' memory where its node finds none for its own books.
#include <gtest/gtest.h>

#include "../watched_new.hpp"
#include "services/memory.hpp"

namespace {
unsigned refused_in = 0;  // counts down with each allocation: the one that makes it 0 is refused; 0: none is
}

void rove::test::asked_for(std::size_t /*bytes*/) {
    if (refused_in > 0 && --refused_in == 0) throw std::bad_alloc();
}

namespace rove::test {
namespace {

// Each of its allocations in turn is refused, to a small block, a large one, and a large one beyond the files that may wait.
TEST(MemoryTable, WhatFindsNoMemoryIsNotCountedAndHarmsNothing) {
    constexpr std::size_t kBytes = 1UL << 20U;
    constexpr unsigned kMost = 32;
    for (const std::size_t bytes : {std::size_t{64}, kBytes}) {
        MemoryTable table(kBytes * (MemoryTable::kUnmappedFilesMax + 2));
        for (unsigned refused = 1;; ++refused) {
            ASSERT_LT(refused, kMost);
            refused_in = refused;
            bool made = false;
            try {
                const auto place = table.allocate(bytes, 1);
                made = place.has_value();
                if (made) EXPECT_NE(table.find(place->key), nullptr);
                if (!made) EXPECT_EQ(place.error().code(), ErrorCode::overloaded);
            } catch (const std::bad_alloc&) {
            }
            const bool in_want = refused_in == 0;
            refused_in = 0;
            if (made) table.peer_left(1);
            while (table.sweep() > 0) {
            }
            if (!in_want) break;
            // All of the room is there still, and all files that may wait.
            for (std::size_t i = 0; i < MemoryTable::kUnmappedFilesMax + 2; ++i)
                ASSERT_TRUE(table.allocate(kBytes, 2)) << i << " without the allocation " << refused;
            table.peer_left(2);
            while (table.sweep() > 0) {
            }
        }
    }
}

}  // namespace
}  // namespace rove::test
