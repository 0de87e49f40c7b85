#include "base/memory_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

namespace rove {

static constexpr int kFixed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

bool grow_file(int file, std::size_t bytes) {
    rlimit most{};
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && bytes > most.rlim_cur) {
        errno = EFBIG;
        return false;
    }
    return ftruncate(file, static_cast<off_t>(bytes)) == 0;
}

bool fix_size(int file) {
    return fcntl(file, F_ADD_SEALS, kFixed) == 0;
}

bool is_fixed_memory(int file, std::size_t bytes) {
    struct stat facts{};
    struct statfs at{};
    const int seals = fcntl(file, F_GET_SEALS);
    return fstat(file, &facts) == 0 && facts.st_size == static_cast<off_t>(bytes) && fstatfs(file, &at) == 0 &&
           at.f_type == TMPFS_MAGIC && seals >= 0 && (seals & kFixed) == kFixed;
}

}  // namespace rove
