// Values as the bytes that travel, without a node.
#pragma once

#include <cstddef>
#include <vector>

#include "rove/detail/travel.hpp"

namespace rove::test {

template <typename T>
std::vector<std::byte> bytes_of(const T& value) {
    std::vector<std::byte> bytes;
    detail::travel::Output out(bytes);
    detail::travel::write(out, value);
    return bytes;
}
template <typename T>
T value_of(const std::vector<std::byte>& bytes) {
    detail::travel::Input in(bytes.data(), bytes.size());
    return detail::travel::read<T>(in);
}

}  // namespace rove::test
