// Writing all of something to a descriptor.
#pragma once

#include <unistd.h>

#include <cerrno>

#include "base/bytes.hpp"

namespace rove {

// Waits where the descriptor takes no more now, unless it is non-blocking. False: errno says why not, and a part may have been written.
inline bool write_all(int file, Bytes content) {
    while (!content.empty()) {
        const ssize_t put = write(file, content.data(), content.size());
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        content = content.subspan(static_cast<std::size_t>(put));
    }
    return true;
}

}  // namespace rove
