#include "fabric/region_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/grow_file.hpp"

namespace rove::fabric {
namespace {

// Growing: memory beyond the end is attached to the file, too, and whoever unmaps it last frees all of it, however long that takes.
constexpr int kSealsWanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// The size of a memory file of huge pages is a multiple of their size, so no such file has these sizes. Its pages would be taken from a pool,
// and access to a hole punched into it raises SIGBUS if the pool is empty.
static_assert(sizeof(Region) % (64UL * 1024) != 0 && sizeof(BoardMemory) % (64UL * 1024) != 0);

template <typename T>
struct Name;
template <>
struct Name<Region> {
    static constexpr std::string_view kText = "mailbox";
    static constexpr const char* kFile = "rove-mailbox";
};
template <>
struct Name<BoardMemory> {
    static constexpr std::string_view kText = "board";
    static constexpr const char* kFile = "rove-board";
};

// unsupported: the file is no memory file of the right size, or not sealed.
template <typename T>
Status check_memory_file(int file) {
    struct stat facts{};
    const int seals = fcntl(file, F_GET_SEALS);
    if (fstat(file, &facts) == 0 && facts.st_size == sizeof(T) && seals >= 0 && (seals & kSealsWanted) == kSealsWanted)
        return {};
    return fail(ErrorCode::unsupported, "the peer's {} is not a sealed memory file of {} bytes", Name<T>::kText,
                sizeof(T));
}

}  // namespace

template <typename T>
Result<Shared<T>> make_shared_memory() {
    Descriptor file(memfd_create(Name<T>::kFile, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file.is_open())
        return fail(ErrorCode::overloaded, "no memory file for a {} ({}); raise the limit (ulimit -n)", Name<T>::kText,
                    strerror(errno));
    Mapped<T> memory;
    if (grow_file(file.number(), sizeof(T)) &&
        fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        memory = map_memory<T>(MAP_SHARED, file.number());
    if (!memory)
        return fail(ErrorCode::overloaded, "no memory for a {} of {} bytes ({})", Name<T>::kText, sizeof(T),
                    strerror(errno));
    populate(*memory);
    return Shared<T>{std::move(file), std::move(memory)};
}

template <typename T>
Result<Mapped<T>> map_peers_memory(std::uint32_t pid, const ProcFile& offered) {
    ROVE_TRY(const Descriptor file, offered.open(pid, S_IFREG));
    ROVE_CHECK(check_memory_file<T>(file.number()));
    Mapped<T> memory = map_memory<T>(MAP_SHARED, file.number());
    if (!memory)
        return fail(errno == ENOMEM ? ErrorCode::overloaded : ErrorCode::unsupported,
                    "the peer's {} cannot be mapped ({})", Name<T>::kText, strerror(errno));
    populate(*memory);
    return memory;
}

Status check_owner(const Region& region, std::uint64_t token, std::uint64_t own_token) {
    if (token != own_token &&
        std::atomic_ref(const_cast<std::uint64_t&>(region.owner)).load(std::memory_order_relaxed) == token)
        return {};
    return fail(ErrorCode::unsupported, "the peer's offer names memory that is not its mailbox");
}

template Result<Shared<Region>> make_shared_memory<Region>();
template Result<Shared<BoardMemory>> make_shared_memory<BoardMemory>();
template Result<Mapped<Region>> map_peers_memory<Region>(std::uint32_t, const ProcFile&);
template Result<Mapped<BoardMemory>> map_peers_memory<BoardMemory>(std::uint32_t, const ProcFile&);

}  // namespace rove::fabric
