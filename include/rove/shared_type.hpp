// What an object that a node shares is known by: its type's name, size and alignment, in the name of one type that costs nothing.
#pragma once

#include <cstddef>
#include <typeinfo>

namespace rove::detail {

template <typename T, std::size_t kBytes, std::size_t kAlignment>
struct Shared {};

template <typename T>
[[nodiscard]] const char* shared_type() {
    return typeid(Shared<T, sizeof(T), alignof(T)>).name();
}

}  // namespace rove::detail
