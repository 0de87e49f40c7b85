#include "base/stack.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdint>

namespace rove {

namespace {

// The lowest address to which the stack may grow; 0: unknown.
std::uintptr_t end_of_stack() {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
    void* lowest = nullptr;
    std::size_t bytes = 0, guard = 0;
    const bool known =
        pthread_attr_getstack(&attributes, &lowest, &bytes) == 0 && pthread_attr_getguardsize(&attributes, &guard) == 0;
    (void)pthread_attr_destroy(&attributes);
    return known ? reinterpret_cast<std::uintptr_t>(lowest) + guard : 0;
}

}  // namespace

std::size_t stack_left() {
    thread_local const std::uintptr_t end = end_of_stack();
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    // A function on another stack (a fiber's, a signal handler's) is outside of the thread's stack.
    return end != 0 && here > end ? here - end : SIZE_MAX;
}

bool has_less_stack_than(std::size_t bytes) {
    thread_local const bool is_main = gettid() == getpid();
    return !is_main && stack_left() < bytes;
}

}  // namespace rove
