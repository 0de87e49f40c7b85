// Finds and opens librove-jit.so, once.
#include <dlfcn.h>

#include "base/own_library.hpp"
#include "code/jit/jit.hpp"

namespace rove::code::jit {
namespace {

Result<Engine*> open() {
    const Result<void*> library = open_own_library("librove-jit.so");
    if (!library)
        return fail(
            ErrorCode::unsupported,
            "bitcode cannot be compiled here: {}; install Rove's librove-jit.so and the Debian package libllvm19",
            library.error().message());
    auto* factory = reinterpret_cast<Engine* (*)()>(dlsym(*library, kEngineFactory));
    if (factory == nullptr)
        return fail(ErrorCode::internal, "librove-jit.so has no {}: it is of another version of Rove", kEngineFactory);
    return factory();
}

}  // namespace

Result<Engine*> engine() {
    static constinit OpenedOnce<Engine> opened;
    return opened.get(open);
}

}  // namespace rove::code::jit
