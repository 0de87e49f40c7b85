// Strong ids. None of them is an address or depends on one.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rove {

using Bytes = std::span<const std::byte>;

// N opaque bytes, written as 2N lower-case hexadecimal digits. Tag keeps ids of one size apart.
template <std::size_t N, typename Tag>
struct OpaqueId {
    std::array<std::uint8_t, N> bytes{};

    friend auto operator<=>(const OpaqueId&, const OpaqueId&) = default;

    [[nodiscard]] std::string hex() const {
        static constexpr std::string_view kDigits = "0123456789abcdef";
        std::string text;
        text.reserve(2 * N);
        for (const std::uint8_t byte : bytes) {
            text += kDigits[byte >> 4U];
            text += kDigits[byte & 15U];
        }
        return text;
    }

    // Nothing unless the text is exactly 2N hexadecimal digits.
    [[nodiscard]] static std::optional<OpaqueId> parse(std::string_view text) {
        if (text.size() != 2 * N) return std::nullopt;
        const auto digit = [](char c) -> int {
            if (c >= '0' && c <= '9') return c - '0';
            if (c >= 'a' && c <= 'f') return c - 'a' + 10;
            if (c >= 'A' && c <= 'F') return c - 'A' + 10;
            return -1;
        };
        OpaqueId id;
        for (std::size_t i = 0; i < N; ++i) {
            const int high = digit(text[2 * i]);
            const int low = digit(text[2 * i + 1]);
            if (high < 0 || low < 0) return std::nullopt;
            id.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
        }
        return id;
    }

    [[nodiscard]] static OpaqueId from(std::span<const std::byte, N> raw) {
        OpaqueId id;
        std::memcpy(id.bytes.data(), raw.data(), N);
        return id;
    }
    [[nodiscard]] Bytes raw() const { return std::as_bytes(std::span(bytes)); }
};

// BLAKE2b-256 of a package's manifest, which contains the hash of every slice.
using Digest = OpaqueId<32, struct DigestTag>;
// BLAKE2b-256 of one slice's bytes as they are stored and sent, compressed or not.
using SliceHash = OpaqueId<32, struct SliceHashTag>;
// Names one entry point for ever: derived from the package's digest and the entry's name.
using FunctionId = OpaqueId<16, struct FunctionIdTag>;

// A node's dense id 0…n-1 among the nodes that joined one another, or, with kClientBit set, a client:
// bit 31 | home node (15 bits) | index of the client on its home node (16 bits).
using NodeId = std::uint32_t;
inline constexpr NodeId kClientBit = 0x8000'0000U;
inline constexpr NodeId kNodeIdMax = 0x7FFEU;  // dense ids fit 15 bits; 0x7FFF is kept as "none"
inline constexpr NodeId kNoNode = 0xFFFF'FFFFU;
// A client's own number for a node that it met, because nodes of several clusters may have the same dense id. Never on the wire.
inline constexpr NodeId kForeignBit = 0x4000'0000U;

[[nodiscard]] constexpr bool is_client(NodeId id) {
    return (id & kClientBit) != 0;
}
[[nodiscard]] constexpr NodeId client_id(NodeId home, std::uint16_t index) {
    return kClientBit | (home << 16U) | index;
}
[[nodiscard]] constexpr NodeId home_of(NodeId id) {
    return is_client(id) ? (id & ~kClientBit) >> 16U : id;
}

}  // namespace rove

template <std::size_t N, typename Tag>
struct std::hash<rove::OpaqueId<N, Tag>> {
    std::size_t operator()(const rove::OpaqueId<N, Tag>& id) const noexcept {
        std::size_t value = 0;  // the bytes are already a cryptographic hash
        std::memcpy(&value, id.bytes.data(), sizeof value);
        return value;
    }
};
