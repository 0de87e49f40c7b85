// A hash table whose keys are names that peers choose.
//
// Its hash function (SipHash) has a key of this process's own, so a peer cannot choose names that fall into one bucket and make each look-up
// walk through all of them.
//
// Threads: hashing by any; a NameMap as any container. The key is made when the library is loaded, and constant from then on.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace rove {

struct KeyedHash {
    [[nodiscard]] std::size_t operator()(std::string_view name) const noexcept;
};

template <typename Value>
using NameMap = std::unordered_map<std::string, Value, KeyedHash>;

}  // namespace rove
