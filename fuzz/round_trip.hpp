// What every fuzzer of a format checks: decoding never crashes, and what is accepted means the same when written again.
#pragma once

#include <cstdlib>

#include "base/bytes.hpp"

namespace rove::fuzz {

template <typename Decode>
void round_trip(const std::uint8_t* data, std::size_t size, Decode decode) {
    const auto first = decode(std::as_bytes(std::span(data, size)));
    if (!first) return;
    const auto second = decode(encode(*first));
    if (!second || *second != *first) std::abort();
}

// libFuzzer's own mutation, but one time in sixteen of a sample that is right, so that a run of seconds gets behind the
// magic and the lengths.
template <typename Mutate>
std::size_t mutate(std::uint8_t* data, std::size_t size, std::size_t size_max, unsigned seed, Bytes sample,
                   Mutate own) {
    if (seed % 16 == 0 && sample.size() <= size_max) {
        std::memcpy(data, sample.data(), sample.size());
        size = sample.size();
    }
    return own(data, size, size_max);
}

}  // namespace rove::fuzz
