// Finds and opens librove-jit.so, once.
#include <dlfcn.h>

#include <filesystem>
#include <mutex>

#include "code/jit/jit.hpp"

namespace rove::code::jit {
namespace {

// Beside this code, in ../lib, in what the build tree calls lib; then wherever the system looks.
std::vector<std::string> places() {
    constexpr std::string_view kName = "librove-jit.so";
    std::vector<std::string> found;
    Dl_info self{};
    if (dladdr(reinterpret_cast<void*>(&engine), &self) != 0 && self.dli_fname != nullptr) {
        std::error_code ignored;
        std::filesystem::path file = self.dli_fname;
        if (!file.has_parent_path() || file.is_relative())
            file = std::filesystem::read_symlink("/proc/self/exe", ignored);
        const std::filesystem::path folder = std::filesystem::weakly_canonical(file, ignored).parent_path();
        for (const char* way : {".", "../lib", "../../lib", "../../../lib"})
            if (const auto candidate = folder / way / kName; std::filesystem::exists(candidate, ignored))
                found.push_back(candidate.string());
    }
    found.emplace_back(kName);
    return found;
}

Result<Engine*> open() {
    std::string why;
    for (const std::string& place : places()) {
        // Local, so that LLVM's names stay out of the way of shipped code's; never closed, for compiled code lives in it.
        void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library == nullptr) {
            why = dlerror();
            continue;
        }
        auto* factory = reinterpret_cast<Engine* (*)()>(dlsym(library, kEngineFactory));
        if (factory == nullptr)
            return fail(ErrorCode::internal, "{} has no {}: it is of another version of Rove", place, kEngineFactory);
        return factory();
    }
    return fail(ErrorCode::unsupported,
                "bitcode cannot be compiled here: {}; install Rove's librove-jit.so and the Debian package libllvm19",
                why);
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
