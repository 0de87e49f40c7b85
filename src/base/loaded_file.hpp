// The program or library that an address belongs to.
#pragma once

#include <string>

namespace rove {

struct LoadedFile {
    std::string path;      // empty: the address is in none
    std::string build_id;  // a number that the linker computes from its content; empty: it has none
};

// Threads: any.
[[nodiscard]] LoadedFile loaded_file_of(const void* address);

}  // namespace rove
