// Mapped memory that its owner unmaps.
//
// Threads: a Mapping is used by one at a time; its memory by any thread that has the address.
//
// Invariant: `start_` is null, or the mapping is unmapped by this object alone.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace rove {

class Mapping {
public:
    Mapping() = default;
    // Takes over the result of mmap(), including MAP_FAILED.
    Mapping(void* mapped, std::size_t bytes)
        : start_(mapped != MAP_FAILED ? static_cast<std::byte*>(mapped) : nullptr), bytes_(bytes) {}
    Mapping(Mapping&& other) noexcept : start_(std::exchange(other.start_, nullptr)), bytes_(other.bytes_) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(start_, other.start_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Mapping() {
        if (start_ != nullptr) munmap(start_, bytes_);
    }

    [[nodiscard]] std::byte* start() const { return start_; }  // null: nothing is mapped
    explicit operator bool() const { return start_ != nullptr; }

private:
    std::byte* start_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace rove
