// The fabric between processes: shared memory where both ends can map it (direct lanes), TCP active messages elsewhere.
#pragma once

#include <memory>
#include <string_view>

#include "fabric/fabric.hpp"

namespace rove::fabric {

struct UcxOptions {
    bool shm = true;  // allow direct lanes
    bool tcp = true;  // allow message lanes
};

// unsupported: none of the allowed transports works here (UCX_TLS may exclude it).
[[nodiscard]] Result<std::unique_ptr<Fabric>> open_ucx_fabric(const UcxOptions& options);

[[nodiscard]] std::string_view ucx_version();

}  // namespace rove::fabric
