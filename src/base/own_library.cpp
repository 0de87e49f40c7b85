#include "base/own_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/loaded_file.hpp"

namespace rove {
namespace {

std::vector<std::string> places_of(std::string_view file_name) {
    std::vector<std::string> found;
    Dl_info self{};
    if (dladdr(reinterpret_cast<void*>(&open_own_library), &self) != 0 && self.dli_fname != nullptr) {
        std::error_code ignored;
        std::filesystem::path file = self.dli_fname;
        if (!file.has_parent_path() || file.is_relative())
            file = std::filesystem::read_symlink("/proc/self/exe", ignored);
        const std::filesystem::path folder = std::filesystem::weakly_canonical(file, ignored).parent_path();
        for (const char* way : {".", "../lib", "../../lib", "../../../lib"})
            if (const auto candidate = folder / way / file_name; std::filesystem::exists(candidate, ignored))
                found.push_back(candidate.string());
    }
    found.emplace_back(file_name);
    return found;
}

}  // namespace

std::string build_of(const void* address) {
    std::string text;
    for (const char each : loaded_file_of(address).build_id)
        text += fmt::format("{:02x}", static_cast<unsigned char>(each));
    return text;
}

Result<void*> open_own_library(std::string_view file_name) {
    std::string why;
    for (const std::string& place : places_of(file_name)) {
        if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return library;
        why = dlerror();
    }
    return fail(ErrorCode::unsupported, "{}", why);
}

}  // namespace rove
