// Which types are numbers: the arithmetic ones, and those of 16 bits that std::is_arithmetic_v leaves out.
#pragma once

#include <cstdint>
#include <type_traits>
#include <typeinfo>

namespace rove::detail {

// What distinguishes a floating-point number of 16 bits in schemas; 0: it is none, or the compiler has none. These travel on the wire: they
// never change.
template <typename T>
inline constexpr std::uint32_t kHalfPrecision = 0;
#ifdef __FLT16_MANT_DIG__
__extension__ typedef _Float16 Half;  // NOLINT(modernize-use-using): a `using` cannot be an extension
template <>
inline constexpr std::uint32_t kHalfPrecision<Half> = 7;
#endif
#if defined(__BFLT16_MANT_DIG__) || \
    (defined(__clang__) && __clang_major__ >= 19 && (defined(__SSE2__) || defined(__aarch64__)))
__extension__ typedef __bf16 BrainHalf;  // NOLINT(modernize-use-using)
template <>
inline constexpr std::uint32_t kHalfPrecision<BrainHalf> = 11;
#define ROVE_HAS_BF16 1
#endif

template <typename T>
concept Number = std::is_arithmetic_v<T> || kHalfPrecision<std::remove_cv_t<T>> != 0;

// The type's std::type_info, or another one instead of that of a number of 16 bits: the library may have none of it (libstdc++ 12).
template <typename T>
struct NumberOfSixteenBits {};
template <typename T>
const std::type_info& type_info_of() {
    if constexpr (kHalfPrecision<std::remove_cv_t<T>> != 0)
        return typeid(NumberOfSixteenBits<std::remove_cv_t<T>>);
    else
        return typeid(T);
}

}  // namespace rove::detail
