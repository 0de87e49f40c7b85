// Finds and opens librove-ucx.so once.
#include <dlfcn.h>

#include "base/own_library.hpp"
#include "fabric/ucx/ucx_fabric.hpp"

namespace rove::fabric {
namespace {

Result<const UcxLibrary*> open_library() {
    const Result<void*> library = open_own_library("librove-ucx.so");
    if (!library)
        return fail(
            ErrorCode::unsupported,
            "the fabric ucx cannot be used here: {}; install Rove's librove-ucx.so and the Debian package libucx0",
            library.error().message());
    auto* list = reinterpret_cast<const UcxLibrary* (*)()>(dlsym(*library, kUcxLibrary));
    if (list == nullptr)
        return fail(ErrorCode::internal, "librove-ucx.so has no {}: it is of another version of Rove", kUcxLibrary);
    return list();
}

Result<const UcxLibrary*> library() {
    static constinit OpenedOnce<const UcxLibrary> opened;
    return opened.get(open_library);
}

}  // namespace

Result<std::unique_ptr<Fabric>> open_ucx_fabric(const UcxOptions& options) {
    ROVE_TRY(const UcxLibrary* ucx, library());
    return ucx->open(options);
}

Result<std::string_view> ucx_version() {
    ROVE_TRY(const UcxLibrary* ucx, library());
    return ucx->version();
}

}  // namespace rove::fabric
