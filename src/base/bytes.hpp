// Reading and writing little-endian bytes. A Reader never reads past its end: after the first short read every
// further read returns zeros and ok() is false, so a decoder checks once, at its end, before it uses anything.
//
// Threads: a Reader or a Writer is used by one at a time. A Reader borrows its bytes.
//
// Invariants: what a Reader has not read yet is the end of its bytes. Once ok() is false it stays false.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace rove {

static_assert(std::endian::native == std::endian::little, "Rove's formats are little-endian and copied as they are");

using ByteBuffer = std::vector<std::byte>;

[[nodiscard]] inline Bytes as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}
[[nodiscard]] inline std::string_view as_text(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// False: there is no memory for the copy.
[[nodiscard]] inline bool copied(Bytes from, ByteBuffer& to) noexcept {
    try {
        to.assign(from.begin(), from.end());
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}
[[nodiscard]] constexpr std::size_t round_up(std::size_t value, std::size_t power_of_two) {
    return (value + power_of_two - 1) & ~(power_of_two - 1);
}

class Reader {
public:
    explicit Reader(Bytes bytes) : rest_(bytes) {}

    template <std::unsigned_integral T>
    T number() {
        T value = 0;
        if (const Bytes raw = take(sizeof(T)); ok_) std::memcpy(&value, raw.data(), sizeof(T));
        return value;
    }
    // The next `size` bytes, still in place; empty if there are fewer.
    Bytes take(std::size_t size) {
        if (!ok_ || size > rest_.size()) {
            ok_ = false;
            return {};
        }
        const Bytes taken = rest_.first(size);
        rest_ = rest_.subspan(size);
        return taken;
    }
    // Reads a 16-bit length and that many bytes.
    std::string_view text() { return as_text(take(number<std::uint16_t>())); }
    template <typename Id>
    Id id() {
        Id value;
        if (const Bytes raw = take(value.bytes.size()); ok_) std::memcpy(value.bytes.data(), raw.data(), raw.size());
        return value;
    }
    void fail() { ok_ = false; }

    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] bool done() const { return ok_ && rest_.empty(); }
    [[nodiscard]] Bytes rest() const { return rest_; }

private:
    Bytes rest_;
    bool ok_ = true;
};

class Writer {
public:
    template <std::unsigned_integral T>
    void number(T value) {
        append(&value, sizeof value);
    }
    void bytes(Bytes raw) { append(raw.data(), raw.size()); }
    // Precondition: at most 65535 bytes.
    void text(std::string_view text) {
        number(static_cast<std::uint16_t>(text.size()));
        append(text.data(), text.size());
    }

    [[nodiscard]] std::size_t size() const { return out_.size(); }
    [[nodiscard]] ByteBuffer take() { return std::move(out_); }

private:
    void append(const void* data, std::size_t size) {
        const auto* first = static_cast<const std::byte*>(data);
        out_.insert(out_.end(), first, first + size);
    }
    ByteBuffer out_;
};

// memcpy, inlined for the sizes of small payloads.
[[gnu::always_inline]] inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t size) {
    const auto both_ends = [&]<std::size_t kPart>() {
        std::memcpy(to, from, kPart);
        std::memcpy(to + size - kPart, from + size - kPart, kPart);
    };
    if (size >= 16 && size <= 32)
        both_ends.operator()<16>();
    else if (size >= 8 && size < 16)
        both_ends.operator()<8>();
    else if (size >= 4 && size < 8)
        both_ends.operator()<4>();
    else if (size > 0)
        std::memcpy(to, from, size);
}

// Writes zeros after `size` bytes up to the next multiple of 8. memset is not used: with it, calls with a result of 4 bytes took 35 ns
// longer than calls with 8, of 160.
inline void fill_last_word(std::byte* bytes, std::size_t size) {
    std::byte* at = bytes + size;
    const auto fill = [&at]<typename Part>(Part nothing) {
        std::memcpy(at, &nothing, sizeof nothing);
        at += sizeof nothing;
    };
    if (size % 2 != 0) fill(std::uint8_t{0});
    if ((size + 1) / 2 % 2 != 0) fill(std::uint16_t{0});
    if ((size + 3) / 4 % 2 != 0) fill(std::uint32_t{0});
}

}  // namespace rove
