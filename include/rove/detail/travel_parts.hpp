// Arguments that are read while their bytes arrive, part by part.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "rove/detail/travel.hpp"
#include "rove/edge.h"

namespace rove::detail::travel {

// Whether a value can be read in parts.
template <typename T>
constexpr bool is_read_in_parts() {
    return Bitwise<T> || can_gather<T>();
}

// Like Input, for a payload that is still arriving. If its call is abandoned, zeros and empty containers are read from then on, and
// is_complete() is false.
class PartsInput {
public:
    PartsInput(rove_here* here, std::size_t bytes) : here_(here), left_(bytes) {}

    template <typename T>
    T read() {
        if constexpr (Bitwise<T>) {
            alignas(T) std::byte raw[sizeof(T)];
            read(raw, sizeof raw);
            return from_raw<T>(raw);
        } else {
            std::uint64_t count = 0;
            read(&count, sizeof count);
            return values<T>(count);
        }
    }
    void read(void* into, std::size_t bytes) {
        if (bytes > left_) cut_short();
        auto* to = static_cast<std::byte*>(into);
        const std::size_t there = copy(to, bytes);
        if (there < bytes) std::memset(to + there, 0, bytes - there);
    }
    // Waits for the call itself. False: it will not arrive.
    [[nodiscard]] bool is_complete() {
        while (next_part()) pass(part_bytes_);
        return !is_over_;
    }

private:
    // Copies each part to its place as it arrives. If whole values begin at the part's beginning and are aligned, they are constructed from it
    // directly, not zeroed first.
    template <typename C>
    C values(std::uint64_t count) {
        using T = typename C::value_type;
        if (is_over_) return {};
        if (count > left_ / sizeof(T)) cut_short();
        const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
        C into;
        into.reserve(static_cast<std::size_t>(count));
        for (std::size_t filled = 0; filled < bytes && has_part();) {
            std::size_t some = std::min(bytes - filled, part_bytes_);
            const std::size_t whole = some / sizeof(T);
            if (std::is_trivially_copyable_v<T> && filled % sizeof(T) == 0 && whole > 0 &&
                reinterpret_cast<std::uintptr_t>(part_) % alignof(T) == 0) {
                const T* const first = std::launder(reinterpret_cast<const T*>(part_));
                if constexpr (IsPlainString<C>::value)
                    into.append(first, whole);
                else if constexpr (std::is_copy_assignable_v<T>)
                    into.insert(into.end(), first, first + whole);
                else
                    for (std::size_t i = 0; i < whole; ++i) into.emplace_back(first[i]);
                some = whole * sizeof(T);
            } else if constexpr (std::is_trivially_default_constructible_v<T>) {
                into.resize((filled + some + sizeof(T) - 1) / sizeof(T));
                std::memcpy(reinterpret_cast<std::byte*>(into.data()) + filled, part_, some);
            } else {  // the default constructor may do anything, so each value is made from its bytes only
                alignas(T) std::byte one[sizeof(T)];
                if (copy(one, sizeof(T)) < sizeof(T)) break;
                into.emplace_back(*std::launder(reinterpret_cast<const T*>(one)));
                filled += sizeof(T);
                continue;
            }
            filled += some;
            pass(some);
        }
        if (is_over_) into.clear();
        return into;
    }
    // Copies from as many parts as needed; returns how many bytes have arrived.
    std::size_t copy(std::byte* to, std::size_t bytes) {
        std::size_t copied = 0;
        while (copied < bytes && has_part()) {
            const std::size_t some = std::min(bytes - copied, part_bytes_);
            std::memcpy(to + copied, part_, some);
            copied += some;
            pass(some);
        }
        return copied;
    }
    void pass(std::size_t bytes) {
        part_ += bytes;
        part_bytes_ -= bytes;
        left_ -= bytes;
    }
    [[nodiscard]] bool has_part() { return part_bytes_ > 0 || next_part(); }
    // Precondition of every read: it ends within the payload, because the call follows after its end.
    [[nodiscard]] bool next_part() {
        if (is_over_) return false;
        const void* part = nullptr;
        is_over_ = rove_payload_next(here_, &part, &part_bytes_) != ROVE_OK;
        part_ = static_cast<const std::byte*>(part);
        if (is_over_) part_bytes_ = 0;
        return part_ != nullptr;
    }

    rove_here* here_;
    const std::byte* part_ = nullptr;
    std::size_t part_bytes_ = 0;
    std::size_t left_;  // bytes of the payload, including this part
    bool is_over_ = false;
};

}  // namespace rove::detail::travel
