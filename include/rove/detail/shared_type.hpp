// Identifies the type of an object that a node shares: name, size and alignment, encoded in the name of one empty type.
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
