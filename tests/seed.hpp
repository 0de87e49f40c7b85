// The seed of tests that take their steps at random.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace rove::test {

// The seed of this run: ROVE_TEST_SEED, or a new one. It is printed at once, so that it is there if the test crashes.
[[nodiscard]] inline std::uint64_t seed() {
    static const std::uint64_t seed = [] {
        const char* given = std::getenv("ROVE_TEST_SEED");
        const std::uint64_t value = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
        std::cout << "ROVE_TEST_SEED=" << value << "\n" << std::flush;
        return value;
    }();
    return seed;
}

}  // namespace rove::test
