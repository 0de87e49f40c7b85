#include "package/digest.hpp"

#include <sodium.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace rove {
namespace {

const unsigned char* raw(Bytes bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

template <typename Id, typename Parts>
Id hash_all(const Parts& parts) {
    crypto_generichash_state state;
    crypto_generichash_init(&state, nullptr, 0, sizeof(Id));
    for (const Bytes part : parts) crypto_generichash_update(&state, raw(part), part.size());
    Id id;
    crypto_generichash_final(&state, id.bytes.data(), id.bytes.size());
    return id;
}
template <typename Id>
Id hash(std::initializer_list<Bytes> parts) {
    return hash_all<Id>(parts);
}

}  // namespace

FunctionId resident_id(std::initializer_list<std::string_view> parts) {
    static constexpr std::array<std::byte, 1> kZero{};
    std::vector<Bytes> all{std::as_bytes(std::span(std::string_view("resident")))};
    for (const std::string_view& part : parts) {
        all.emplace_back(kZero);
        all.push_back(std::as_bytes(std::span(part)));
    }
    return hash_all<FunctionId>(all);
}

Digest digest_of_manifest(Bytes manifest) {
    return hash<Digest>({manifest});
}
Digest digest_of(std::initializer_list<std::string_view> parts) {
    std::vector<std::uint64_t> sizes;
    sizes.reserve(parts.size());
    std::vector<Bytes> all;
    for (const std::string_view& part : parts) {
        all.push_back(std::as_bytes(std::span(&sizes.emplace_back(part.size()), 1)));
        all.push_back(std::as_bytes(std::span(part)));
    }
    return hash_all<Digest>(all);
}
SliceHash hash_of_slice(Bytes stored) {
    return hash<SliceHash>({stored});
}

static_assert(sizeof(crypto_generichash_state) == 384 && alignof(crypto_generichash_state) <= 64);

SliceHasher::SliceHasher() {
    crypto_generichash_init(reinterpret_cast<crypto_generichash_state*>(state_.data()), nullptr, 0, sizeof(SliceHash));
}

void SliceHasher::add(Bytes piece) {
    crypto_generichash_update(reinterpret_cast<crypto_generichash_state*>(state_.data()), raw(piece), piece.size());
}

SliceHash SliceHasher::hash() const {
    crypto_generichash_state state;
    std::memcpy(&state, state_.data(), sizeof state);
    SliceHash hash;
    crypto_generichash_final(&state, hash.bytes.data(), hash.bytes.size());
    return hash;
}

FunctionId function_id(const Digest& package, std::string_view entry) {
    constexpr std::array<std::byte, 1> kZero{};
    return hash<FunctionId>({package.raw(), kZero, std::as_bytes(std::span(entry))});
}

}  // namespace rove
