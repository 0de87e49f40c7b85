// The size of a memory file.
#pragma once

#include <cstddef>

namespace rove {

// ftruncate(); false: see errno. If RLIMIT_FSIZE forbids this process a file of that size, returns false with EFBIG, instead of letting the
// kernel end the process with a signal (SIGXFSZ).
[[nodiscard]] bool grow_file(int file, std::size_t bytes);

}  // namespace rove
