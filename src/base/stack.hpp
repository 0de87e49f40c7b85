// How much of its stack a thread has left.
#pragma once

#include <cstddef>

namespace rove {

// Bytes between here and the end of the calling thread's stack; as much as there can be where the system does not tell. The first
// call in a thread asks the system (for the main thread it reads /proc/self/maps: some 100 us), later ones subtract.
[[nodiscard]] std::size_t stack_left();

// Whether the calling thread has less than that. Not asked for the main thread, whose stack is large: its first call would take long.
[[nodiscard]] bool has_less_stack_than(std::size_t bytes);

}  // namespace rove
