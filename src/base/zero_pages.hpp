// ZeroPages: an array of zeros that is large and mostly unused. Its pages are made as they are first written, which a std::vector would do at once.
//
// Threads: as an array. Invariant: an element that was never written is zero.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

#include "base/mapping.hpp"

namespace rove {

// T: all of its bits zero is the value that it begins with.
template <typename T>
class ZeroPages {
    static_assert(std::is_trivially_destructible_v<T>);

public:
    explicit ZeroPages(std::size_t count)
        : memory_(mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1, 0),
                  count * sizeof(T)) {
        if (!memory_) throw std::bad_alloc();
    }
    [[nodiscard]] T& operator[](std::size_t index) { return reinterpret_cast<T*>(memory_.start())[index]; }
    [[nodiscard]] const T& operator[](std::size_t index) const {
        return reinterpret_cast<const T*>(memory_.start())[index];
    }

private:
    Mapping memory_;
};

}  // namespace rove
