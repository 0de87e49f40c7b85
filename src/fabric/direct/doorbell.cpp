#include "fabric/direct/doorbell.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace rove::fabric {
namespace {

constexpr std::size_t kPipeBytes = 4096;  // one page, the least that a pipe has

}  // namespace

Result<Doorbell> Doorbell::open() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
        return fail(ErrorCode::overloaded, "no pipe for a fabric's doorbell ({}); raise the limit (ulimit -n)",
                    strerror(errno));
    const Descriptor reader(ends[0]);
    const Descriptor writer(ends[1]);
    (void)fcntl(writer.number(), F_SETPIPE_SZ, kPipeBytes);
    Descriptor both(::open(fmt::format("/proc/self/fd/{}", ends[0]).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!both.is_open())
        return fail(ErrorCode::unsupported, "shared memory needs /proc, which is not mounted here ({})",
                    strerror(errno));
    return Doorbell(std::move(both));
}

Result<Doorbell> Doorbell::open_peers(std::uint32_t pid, const ProcFile& file) {
    ROVE_TRY(Descriptor pipe, file.open(pid, S_IFIFO));
    return Doorbell(std::move(pipe));
}

void Doorbell::ring() const noexcept {
    const char bell = 1;
    (void)!write(pipe_.number(), &bell, sizeof bell);
}

void Doorbell::drain() const noexcept {
    std::array<char, kPipeBytes> bells;
    // One read is enough: if the pipe is filled faster than it is read, its reader is only woken once more.
    (void)!read(pipe_.number(), bells.data(), bells.size());
}

}  // namespace rove::fabric
