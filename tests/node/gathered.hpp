// What tests of gathering send and look at: values whose every element is known, and the node that serves them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/here.hpp"
#include "hand_made.hpp"

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
template <typename C>
bool is_right(const C& values) {
    for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] != value_at<typename C::value_type>(i)) return false;
    return true;
}

inline std::atomic<NodeCore*> core_of_server{nullptr};
inline void note_server(Here& here) {
    core_of_server = &here.raw()->node();
}

}  // namespace rove::test
