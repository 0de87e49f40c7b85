// Replaces the program's operator new, so that a test sees what is asked for. In one file of a program.
#pragma once

#include <cstdlib>
#include <new>

namespace rove::test {

void asked_for(std::size_t bytes);  // the test's; it must not ask for memory itself, and may throw std::bad_alloc

}  // namespace rove::test

// NOLINTBEGIN(misc-definitions-in-headers,clang-analyzer-cplusplus.NewDelete): one file of a program includes this; and what
// is allocated by malloc is freed by free
void* operator new(std::size_t size) {
    rove::test::asked_for(size);
    if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}
// Libraries use it, too, and give such memory back to the ordinary delete.
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept try {
    rove::test::asked_for(size);
    return std::malloc(size == 0 ? 1 : size);
} catch (const std::bad_alloc&) {
    return nullptr;
}
// As the C++ library's do. A sanitizer's own would not ask the ones above.
void* operator new[](std::size_t size) {
    return operator new(size);
}
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept {
    return operator new(size, tag);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}
// NOLINTEND(misc-definitions-in-headers,clang-analyzer-cplusplus.NewDelete)
