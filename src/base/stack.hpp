// How much of its stack a thread has left.
//
// Threads: any; each asks about its own stack.
#pragma once

#include <cstddef>

namespace rove {

// The number of bytes between here and the end of the calling thread's stack; the largest number if the system does not report it, or if
// this runs on another stack. The first call in a thread asks the system (for the main thread it reads /proc/self/maps: some 100 us), later
// ones subtract.
[[nodiscard]] std::size_t stack_left();

// Whether this runs on the calling thread's own stack, and not on a fiber's or a signal handler's, whose bounds are unknown.
[[nodiscard]] bool is_on_own_stack();

// Whether the calling thread has less stack left than that. Always false in the main thread, whose stack is large and for which the first
// query is slow.
[[nodiscard]] bool has_less_stack_than(std::size_t bytes);

}  // namespace rove
