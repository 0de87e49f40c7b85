// BLAKE2b (libsodium), and the ids that are derived with it.
#pragma once

#include <initializer_list>
#include <string_view>

#include "base/ids.hpp"

namespace rove {

[[nodiscard]] Digest digest_of_manifest(Bytes manifest);
[[nodiscard]] SliceHash hash_of_slice(Bytes stored);
// FunctionId of a shipped function: BLAKE2b-128 over the package's digest, a zero byte and the entry's name.
[[nodiscard]] FunctionId function_id(const Digest& package, std::string_view entry);

// FunctionId of a function of a program: BLAKE2b-128 over "resident" and the parts, a zero byte before each.
[[nodiscard]] FunctionId resident_id(std::initializer_list<std::string_view> parts);

}  // namespace rove
