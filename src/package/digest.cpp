#include "package/digest.hpp"

#include <sodium.h>

#include <array>
#include <span>

namespace rove {
namespace {

const unsigned char* raw(Bytes bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

template <typename Id>
Id hash(std::initializer_list<Bytes> parts) {
    crypto_generichash_state state;
    crypto_generichash_init(&state, nullptr, 0, sizeof(Id));
    for (const Bytes part : parts) crypto_generichash_update(&state, raw(part), part.size());
    Id id;
    crypto_generichash_final(&state, id.bytes.data(), id.bytes.size());
    return id;
}

}  // namespace

Digest digest_of_manifest(Bytes manifest) {
    return hash<Digest>({manifest});
}
SliceHash hash_of_slice(Bytes stored) {
    return hash<SliceHash>({stored});
}

FunctionId function_id(const Digest& package, std::string_view entry) {
    constexpr std::array<std::byte, 1> kZero{};
    return hash<FunctionId>({package.raw(), kZero, std::as_bytes(std::span(entry))});
}

}  // namespace rove
