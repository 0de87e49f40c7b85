// The fabric of a plain node: direct lanes to processes of the same user on the same machine (direct/), and streams over
// sockets that are connected already (stream/). It needs no transport library, and nobody can reach it who has not met this
// node.
#pragma once

#include <memory>

#include "fabric/fabric.hpp"

namespace rove::fabric {

struct LocalOptions {
    bool direct = true;  // allow shared memory: open_link()
    bool stream = true;  // allow streams: open_stream()
};

// overloaded: no more descriptors; unsupported: direct lanes alone were asked for, and shared memory cannot be used here.
[[nodiscard]] Result<std::unique_ptr<Fabric>> open_local_fabric(const LocalOptions& options);

}  // namespace rove::fabric
