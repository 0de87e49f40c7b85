// Finds and opens librove-jit.so, once.
#include <dlfcn.h>

#include "base/own_library.hpp"
#include "bitcode/compiler.hpp"

namespace rove::bitcode {
namespace {

Result<Compiler*> open() {
    const Result<void*> library = open_own_library("librove-jit.so");
    if (!library)
        return fail(
            ErrorCode::unsupported,
            "bitcode cannot be compiled here: {}; install Rove's librove-jit.so and the Debian package libllvm19",
            library.error().message());
    auto* factory = reinterpret_cast<Compiler* (*)()>(dlsym(*library, kFactory));
    if (factory == nullptr)
        return fail(ErrorCode::internal, "librove-jit.so has no {}: it is of another version of Rove", kFactory);
    return factory();
}

}  // namespace

Result<Compiler*> compiler() {
    static constinit OpenedOnce<Compiler> opened;
    return opened.get(open);
}

}  // namespace rove::bitcode
