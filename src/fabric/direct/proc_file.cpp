#include "fabric/direct/proc_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace rove::fabric {

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
    if (!seen.is_open()) return fail(ErrorCode::unsupported, "{} cannot be opened ({})", path, strerror(errno));
    struct stat facts{};
    if (fstat(seen.number(), &facts) != 0 || facts.st_dev != device || facts.st_ino != inode ||
        facts.st_uid != geteuid() || (facts.st_mode & S_IFMT) != kind)
        return fail(ErrorCode::unsupported, "{} is not the file that the peer's offer names", path);
    Descriptor opened(::open(fmt::format("/proc/self/fd/{}", seen.number()).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!opened.is_open()) return fail(ErrorCode::unsupported, "{} cannot be opened ({})", path, strerror(errno));
    return opened;
}

}  // namespace rove::fabric
