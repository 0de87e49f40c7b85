// The memory file of a region or a board: it can neither shrink nor grow nor be unsealed, because access to a part that a peer cut off would
// raise SIGBUS.
//
// Threads: any.
#pragma once

#include <cstdint>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "fabric/mapped_region.hpp"
#include "fabric/proc_file.hpp"

namespace rove::fabric {

// Memory of this process, of zeros, with the pages that it needs first. Peers map the file; afterwards it may be closed.
template <typename T>
struct Shared {
    Descriptor file;
    Mapped<T> memory;
};
// Region, or BoardMemory. overloaded: no descriptor, or no memory.
template <typename T>
[[nodiscard]] Result<Shared<T>> make_shared_memory();

// Maps the memory that process `pid` offers as `file`. unsupported: there is no such file, or it is not of that kind, not sealed, or another
// user's. overloaded: no descriptor, or no memory.
template <typename T>
[[nodiscard]] Result<Mapped<T>> map_peers_memory(std::uint32_t pid, const ProcFile& file);

// Whether a peer's region has the token that was offered. `own_token`: this end's, because a peer could offer this end's own region. A board has
// no token: all peers can write there, and one could keep the others from being believed.
[[nodiscard]] Status check_owner(const Region& region, std::uint64_t token, std::uint64_t own_token);

}  // namespace rove::fabric
