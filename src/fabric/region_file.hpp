// The memory file of a region: it can neither shrink nor grow nor be unsealed, because access to a part that a peer cut off would raise SIGBUS.
//
// Threads: any.
#pragma once

#include <cstdint>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "fabric/mapped_region.hpp"
#include "fabric/proc_file.hpp"

namespace rove::fabric {

// A region of this process, of zeros, with all its pages. The peer maps the file; afterwards it may be closed.
struct SharedRegion {
    Descriptor file;
    MappedRegion memory;
};
// overloaded: no descriptor, or no memory.
[[nodiscard]] Result<SharedRegion> make_shared_region();

// Maps the region that process `pid` offers as `file`, and that has this token. `own_token`: this end's, because a peer could offer this end's own
// region. unsupported: there is no such file, or it is not a region, not sealed, another user's, or has another token. overloaded: no
// descriptor, or no memory.
[[nodiscard]] Result<MappedRegion> map_peers_region(std::uint32_t pid, const ProcFile& file, std::uint64_t token,
                                                    std::uint64_t own_token);

}  // namespace rove::fabric
