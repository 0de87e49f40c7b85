// The fabric over UCX: memory that both ends map, with UCX as the doorbell (direct lanes), otherwise its active messages over TCP.
//
// For trusted networks only: UCX writes to addresses that a message contains and keeps pointers in queues that peers write, so every
// program that can reach one of its ports or queues is trusted with this process. UCX is in librove-ucx.so, which is opened only here: a
// process that does not request this fabric does not load UCX.
//
// Threads: any here; the fabric as any Fabric (../fabric.hpp).
#pragma once

#include <memory>
#include <string_view>

#include "fabric/fabric.hpp"

namespace rove::fabric {

struct UcxOptions {
    bool shm = true;  // allow direct lanes
    bool tcp = true;  // allow message lanes
};

// unsupported: librove-ucx.so or UCX is not installed, or no allowed transport works here (UCX_TLS may exclude it).
[[nodiscard]] Result<std::unique_ptr<Fabric>> open_ucx_fabric(const UcxOptions& options);

// unsupported: as above.
[[nodiscard]] Result<std::string_view> ucx_version();

// librove-ucx.so exports this by one function: `extern "C" const rove::fabric::UcxLibrary* rove_ucx_library()`.
inline constexpr const char* kUcxLibrary = "rove_ucx_library";
struct UcxLibrary {
    Result<std::unique_ptr<Fabric>> (*open)(const UcxOptions& options);
    std::string_view (*version)();
};

}  // namespace rove::fabric
