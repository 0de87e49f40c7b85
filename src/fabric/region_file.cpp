#include "fabric/region_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/grow_file.hpp"

namespace rove::fabric {
namespace {

constexpr int kSealsWanted = F_SEAL_SHRINK | F_SEAL_SEAL;

// The size of a memory file of huge pages is a multiple of their size, so no such file has this size. Its pages would be taken from a pool,
// and access to a hole punched into it raises SIGBUS if the pool is empty.
static_assert(sizeof(Region) % (64UL * 1024) != 0);

// unsupported: the file is no memory file of the right size, or not sealed.
Status check_mailbox_file(int file) {
    struct stat facts{};
    const int seals = fcntl(file, F_GET_SEALS);
    if (fstat(file, &facts) == 0 && facts.st_size == sizeof(Region) && seals >= 0 &&
        (seals & kSealsWanted) == kSealsWanted)
        return {};
    return fail(ErrorCode::unsupported, "the peer's mailbox is not a sealed memory file of {} bytes", sizeof(Region));
}

}  // namespace

Result<SharedRegion> make_shared_region() {
    Descriptor file(memfd_create("rove-mailbox", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file.is_open())
        return fail(ErrorCode::overloaded, "no memory file for a mailbox ({}); raise the limit (ulimit -n)",
                    strerror(errno));
    MappedRegion memory;
    if (grow_file(file.number(), sizeof(Region)) &&
        fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        memory = map_region(MAP_SHARED, file.number());
    if (!memory)
        return fail(ErrorCode::overloaded, "no memory for a mailbox of {} bytes ({})", sizeof(Region), strerror(errno));
    populate(memory.get(), sizeof(Region));
    return SharedRegion{std::move(file), std::move(memory)};
}

Result<MappedRegion> map_peers_region(std::uint32_t pid, const ProcFile& mailbox, std::uint64_t token,
                                      std::uint64_t own_token) {
    ROVE_TRY(const Descriptor file, mailbox.open(pid, S_IFREG));
    ROVE_CHECK(check_mailbox_file(file.number()));
    MappedRegion region = map_region(MAP_SHARED, file.number());
    if (!region)
        return fail(errno == ENOMEM ? ErrorCode::overloaded : ErrorCode::unsupported,
                    "the peer's mailbox cannot be mapped ({})", strerror(errno));
    if (token == own_token || std::atomic_ref(region->owner).load(std::memory_order_relaxed) != token)
        return fail(ErrorCode::unsupported, "the peer's offer names memory that is not its mailbox");
    populate(region.get(), sizeof(Region));
    return region;
}

}  // namespace rove::fabric
