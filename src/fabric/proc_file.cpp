#include "fabric/proc_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace rove::fabric {
namespace {

// The device of a memory file or pipe of this process: the kernel has one device for the memory files of all processes, and one for pipes. Found
// out once.
Result<dev_t> device_of_own(mode_t kind) {
    static constinit std::atomic<dev_t> of_memory{0}, of_pipes{0};  // 0: not yet; no such device has that number
    std::atomic<dev_t>& known = kind == S_IFREG ? of_memory : of_pipes;
    if (const dev_t device = known.load(std::memory_order_relaxed); device != 0) return device;
    Descriptor own;
    if (kind == S_IFREG) {
        own = Descriptor(memfd_create("rove-device", MFD_CLOEXEC));
    } else {
        std::array<int, 2> ends{};
        if (pipe2(ends.data(), O_CLOEXEC) == 0) {
            own = Descriptor(ends[0]);
            const Descriptor writer(ends[1]);
        }
    }
    struct stat facts{};
    if (!own.is_open() || fstat(own.number(), &facts) != 0)
        return fail(ErrorCode::overloaded,
                    "a peer's file cannot be checked ({}); raise the limit of process {} (ulimit -n)", strerror(errno),
                    getpid());
    known.store(facts.st_dev, std::memory_order_relaxed);
    return facts.st_dev;
}

// A file of a peer that cannot be opened, for the reason in errno.
tl::unexpected<Error> not_opened(const std::string& path) {
    if (errno == EMFILE || errno == ENFILE)
        return fail(ErrorCode::overloaded, "{} cannot be opened ({}); raise the limit of process {} (ulimit -n)", path,
                    strerror(errno), getpid());
    return fail(ErrorCode::unsupported, "{} cannot be opened ({})", path, strerror(errno));
}

// The device and inode of an open file. Queries the kernel and not the file's own file system, which may never answer (FUSE).
dev_t device_without_asking(int descriptor) {
    struct statx facts{};
    if (statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &facts) != 0) return 0;
    return makedev(facts.stx_dev_major, facts.stx_dev_minor);
}

}  // namespace

Result<ProcFile> ProcFile::of(int descriptor) {
    struct stat facts{};
    if (fstat(descriptor, &facts) != 0)
        return fail(ErrorCode::internal, "descriptor {} cannot be offered to a peer ({})", descriptor, strerror(errno));
    return ProcFile{static_cast<std::uint32_t>(descriptor), facts.st_dev, facts.st_ino};
}

void ProcFile::write_to(Writer& out) const {
    out.number(descriptor);
    out.number(device);
    out.number(inode);
}

ProcFile ProcFile::read_from(Reader& in) {
    ProcFile file;
    file.descriptor = in.number<std::uint32_t>();
    file.device = in.number<std::uint64_t>();
    file.inode = in.number<std::uint64_t>();
    return file;
}

Result<Descriptor> ProcFile::open(std::uint32_t pid, mode_t kind) const {
    const std::string path = fmt::format("/proc/{}/fd/{}", pid, descriptor);
    const Descriptor seen(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!seen.is_open()) return not_opened(path);
    ROVE_TRY(const dev_t wanted, device_of_own(kind));
    struct stat facts{};
    if (device_without_asking(seen.number()) != wanted || fstat(seen.number(), &facts) != 0 || facts.st_dev != device ||
        facts.st_ino != inode || facts.st_uid != geteuid())
        return fail(ErrorCode::unsupported, "{} is not the file that the peer's offer names", path);
    Descriptor opened(::open(fmt::format("/proc/self/fd/{}", seen.number()).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!opened.is_open()) return not_opened(path);
    return opened;
}

}  // namespace rove::fabric
