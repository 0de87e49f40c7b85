#include "base/stack.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdint>

namespace rove {

namespace {

// The addresses of a thread's stack, from the lowest to which it may grow; none: unknown.
struct Stack {
    std::uintptr_t end = 0, beyond = 0;
};
Stack own_stack() {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
    void* lowest = nullptr;
    std::size_t bytes = 0, guard = 0;
    const bool known =
        pthread_attr_getstack(&attributes, &lowest, &bytes) == 0 && pthread_attr_getguardsize(&attributes, &guard) == 0;
    (void)pthread_attr_destroy(&attributes);
    const auto at = reinterpret_cast<std::uintptr_t>(lowest);
    return known ? Stack{at + guard, at + bytes} : Stack{};
}

const Stack& stack_of_thread() {
    thread_local const Stack stack = own_stack();
    return stack;
}

}  // namespace

std::size_t stack_left() {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return is_on_own_stack() ? here - stack_of_thread().end : SIZE_MAX;
}

bool is_on_own_stack() {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return here > stack_of_thread().end && here < stack_of_thread().beyond;
}

bool has_less_stack_than(std::size_t bytes) {
    thread_local const bool is_main = gettid() == getpid();
    return !is_main && stack_left() < bytes;
}

}  // namespace rove
