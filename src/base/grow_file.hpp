// The size of a memory file.
#pragma once

#include <cstddef>

namespace rove {

// As ftruncate(). Where this process may write no file of that size (RLIMIT_FSIZE) it is false with EFBIG: the kernel would send a
// signal (SIGXFSZ) that ends the process. False: errno says why.
[[nodiscard]] bool grow_file(int file, std::size_t bytes);

}  // namespace rove
