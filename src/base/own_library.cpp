#include "base/own_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

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

struct Search {
    std::uintptr_t address;
    std::string build;
};

// An ELF note: three words (size of its name, size of its content, kind), then name and content, each padded to words.
std::string build_in(const char* notes, std::size_t bytes) {
    const auto filled = [](std::size_t size) { return (size + 3) / 4 * 4; };
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        std::memcpy(&note, notes, sizeof note);
        const std::size_t begin = sizeof note + filled(note.n_namesz), all = begin + filled(note.n_descsz);
        if (all > bytes) break;
        if (note.n_type == NT_GNU_BUILD_ID &&
            std::string_view(notes + sizeof note, note.n_namesz) == std::string_view("GNU", 4)) {
            std::string text;
            for (std::size_t i = 0; i < note.n_descsz; ++i)
                text += fmt::format("{:02x}", static_cast<unsigned char>(notes[begin + i]));
            return text;
        }
        notes += all;
        bytes -= all;
    }
    return {};
}

int look_at(dl_phdr_info* module, std::size_t /*bytes*/, void* data) {
    auto& search = *static_cast<Search*>(data);
    const std::span headers(module->dlpi_phdr, module->dlpi_phnum);
    const bool has_it = std::ranges::any_of(headers, [&](const ElfW(Phdr) & each) {
        return each.p_type == PT_LOAD && search.address - (module->dlpi_addr + each.p_vaddr) < each.p_memsz;
    });
    if (!has_it) return 0;
    for (const ElfW(Phdr) & each : headers)
        if (each.p_type == PT_NOTE && search.build.empty())
            search.build = build_in(reinterpret_cast<const char*>(module->dlpi_addr + each.p_vaddr), each.p_memsz);
    return 1;
}

}  // namespace

std::string build_of(const void* address) {
    Search search{reinterpret_cast<std::uintptr_t>(address), {}};
    const NoForkMeanwhile whole;  // the loader has a lock
    (void)dl_iterate_phdr(&look_at, &search);
    return search.build;
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
