// The fabric of a plain node: direct lanes to processes of the same user on the same machine (direct/). It needs no
// transport library, and nobody can reach it who has not met this node.
#pragma once

#include <memory>

#include "fabric/fabric.hpp"

namespace rove::fabric {

struct LocalOptions {
    bool direct = true;  // allow shared memory
};

// overloaded: no more descriptors; unsupported: what was asked for cannot be had here.
[[nodiscard]] Result<std::unique_ptr<Fabric>> open_local_fabric(const LocalOptions& options);

}  // namespace rove::fabric
