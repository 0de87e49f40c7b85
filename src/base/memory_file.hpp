// Memory files that processes share: their sizes, which are to stay as they are.
//
// If another process makes such a file shorter, a process that accesses what was cut off is ended by SIGBUS, and so is one that accesses a hole in
// a file of huge pages when there are none left. To a file that may grow another process can attach any amount of memory beyond its end, and
// whoever unmaps the file last frees all of it, however long that takes.
#pragma once

#include <cstddef>

namespace rove {

// ftruncate(); false: see errno. If RLIMIT_FSIZE forbids this process a file of that size, returns false with EFBIG, instead of letting the
// kernel end the process with a signal (SIGXFSZ).
[[nodiscard]] bool grow_file(int file, std::size_t bytes);

// From here on its size is fixed. Precondition: it is a memory file that may be sealed. False: see errno.
[[nodiscard]] bool fix_size(int file);
// Whether another process's file is a memory file, of no huge pages, of that size, which is fixed.
[[nodiscard]] bool is_fixed_memory(int file, std::size_t bytes);

}  // namespace rove
