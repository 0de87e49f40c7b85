// Values whose every element is known, so that whoever receives some can tell whether they are right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rove::test {

struct Odd {  // a part holds no whole number of them
    std::uint32_t a, b, c;
    bool operator==(const Odd&) const = default;
};

template <typename T>
T value_at(std::size_t i) {
    if constexpr (std::is_same_v<T, Odd>)
        return {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i * 7), static_cast<std::uint32_t>(~i)};
    else {
        const std::size_t value = i * 31 + i / 251;
        return static_cast<T>(value);
    }
}
template <typename C>
C made(std::size_t count) {
    C values(count, typename C::value_type{});
    for (std::size_t i = 0; i < count; ++i) values[i] = value_at<typename C::value_type>(i);
    return values;
}
// The index of the first element that is wrong; how many there are if all are right.
template <typename C>
std::size_t first_wrong(const C& values) {
    for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] != value_at<typename C::value_type>(i)) return i;
    return values.size();
}
template <typename C>
bool is_right(const C& values) {
    return first_wrong(values) == values.size();
}

}  // namespace rove::test
