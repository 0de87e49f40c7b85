// The fabric of a plain node: direct lanes to processes of the same user on the same machine (direct/), and streams over sockets that are
// connected already (stream/). It needs no transport library, and only processes that have connected to this node can reach it.
//
// Threads: open_local_fabric() by any; the fabric as any Fabric (fabric.hpp).
#pragma once

#include <memory>

#include "fabric/fabric.hpp"

namespace rove::fabric {

struct LocalOptions {
    bool direct = true;  // allow shared memory: open_link()
    bool stream = true;  // allow streams: open_stream()
};

// overloaded: no more descriptors; unsupported: only direct lanes were requested, and shared memory cannot be used here.
[[nodiscard]] Result<std::unique_ptr<Fabric>> open_local_fabric(const LocalOptions& options);

}  // namespace rove::fabric
