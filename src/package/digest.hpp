// BLAKE2b (libsodium), and the ids derived with it.
//
// Threads: any; a SliceHasher is used by one at a time. Invariant: hash() leaves it as it is, so pieces may be added afterwards.
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>

#include "base/ids.hpp"

namespace rove {

[[nodiscard]] Digest digest_of_manifest(Bytes manifest);
// The digest of a list of texts. Lists with the same characters, divided in another way, have other digests.
[[nodiscard]] Digest digest_of(std::initializer_list<std::string_view> parts);
[[nodiscard]] SliceHash hash_of_slice(Bytes stored);
// The hash of a slice that arrives piece by piece.
class SliceHasher {
public:
    SliceHasher();
    void add(Bytes piece);
    [[nodiscard]] SliceHash hash() const;  // of what has been added so far

private:
    alignas(64) std::array<std::byte, 384> state_;  // libsodium's
};
// FunctionId of a shipped function: BLAKE2b-128 over the package's digest, a zero byte and the entry's name.
[[nodiscard]] FunctionId function_id(const Digest& package, std::string_view entry);

// FunctionId of a function of a program: BLAKE2b-128 over "resident" and the parts, a zero byte before each.
[[nodiscard]] FunctionId resident_id(std::initializer_list<std::string_view> parts);

}  // namespace rove
