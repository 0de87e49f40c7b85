#include "base/grow_file.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace rove {

bool grow_file(int file, std::size_t bytes) {
    rlimit most{};
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && bytes > most.rlim_cur) {
        errno = EFBIG;
        return false;
    }
    return ftruncate(file, static_cast<off_t>(bytes)) == 0;
}

}  // namespace rove
