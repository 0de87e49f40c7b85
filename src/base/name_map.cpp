#include "base/name_map.hpp"

#include <sodium.h>

#include <array>
#include <cstring>

namespace rove {
namespace {

static_assert(sizeof(std::size_t) == crypto_shorthash_BYTES);

using HashKey = std::array<unsigned char, crypto_shorthash_KEYBYTES>;

// Made when the library is loaded, so that no fork can interrupt it.
const HashKey hash_key = [] {
    HashKey random;
    randombytes_buf(random.data(), random.size());
    return random;
}();

}  // namespace

std::size_t KeyedHash::operator()(std::string_view name) const noexcept {
    std::array<unsigned char, crypto_shorthash_BYTES> hash;
    crypto_shorthash(hash.data(), reinterpret_cast<const unsigned char*>(name.data()), name.size(), hash_key.data());
    std::size_t number = 0;
    std::memcpy(&number, hash.data(), sizeof number);
    return number;
}

}  // namespace rove
