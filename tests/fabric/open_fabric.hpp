// A fabric by the name that the tests between processes have for it.
#pragma once

#include <memory>
#include <string_view>

#include "fabric/local.hpp"
#include "fabric/ucx/ucx_fabric.hpp"

namespace rove::fabric {

[[nodiscard]] inline Result<std::unique_ptr<Fabric>> open_fabric(std::string_view name) {
    if (name == "ucx_shm") return open_ucx_fabric({.shm = true, .tcp = false});
    if (name == "ucx_tcp") return open_ucx_fabric({.shm = false, .tcp = true});
    return open_local_fabric({});
}

// Where the peer process of a stream finds its socket.
inline constexpr int kStreamDescriptor = 3;
// The keys of one end, and of the other.
inline constexpr StreamKeys kTestKeys{.incoming = 0x1122334455667700, .outgoing = 0x8877665544332200};
inline constexpr StreamKeys kOtherTestKeys{.incoming = kTestKeys.outgoing, .outgoing = kTestKeys.incoming};

}  // namespace rove::fabric
