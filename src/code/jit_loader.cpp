// Finds and opens librove-jit.so, once.
#include <dlfcn.h>

#include <mutex>

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
    static std::mutex mutex;
    static Engine* kept = nullptr;
    const std::lock_guard lock(mutex);
    if (kept == nullptr) {
        ROVE_TRY(kept, open());
    }
    return kept;
}

}  // namespace rove::code::jit
