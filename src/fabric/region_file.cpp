#include "fabric/region_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/memory_file.hpp"

namespace rove::fabric {
namespace {

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

}  // namespace

template <typename T>
Result<Shared<T>> make_shared_memory() {
    Descriptor file(memfd_create(Name<T>::kFile, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file.is_open())
        return fail(ErrorCode::overloaded, "no memory file for a {} ({}); raise the limit (ulimit -n)", Name<T>::kText,
                    strerror(errno));
    Mapped<T> memory;
    if (grow_file(file.number(), sizeof(T)) && fix_size(file.number()))
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
    if (!is_fixed_memory(file.number(), sizeof(T)))
        return fail(ErrorCode::unsupported, "the peer's {} is not a sealed memory file of {} bytes", Name<T>::kText,
                    sizeof(T));
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
