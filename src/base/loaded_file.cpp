#include "base/loaded_file.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/fork.hpp"

namespace rove {
namespace {

using namespace std::string_view_literals;

struct Search {
    std::uintptr_t address;
    LoadedFile found;
};

// Finds the build id in ELF notes. A note: three words (size of its name, size of its content, kind), then name and content, padded to words.
std::string build_id_in(const char* notes, std::size_t bytes) {
    const auto filled = [](std::size_t size) { return (size + 3) / 4 * 4; };
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        std::memcpy(&note, notes, sizeof note);
        const std::size_t begin = sizeof note + filled(note.n_namesz), all = begin + filled(note.n_descsz);
        if (all > bytes) break;
        if (note.n_type == NT_GNU_BUILD_ID && std::string_view(notes + sizeof note, note.n_namesz) == "GNU\0"sv)
            return {notes + begin, note.n_descsz};
        notes += all;
        bytes -= all;
    }
    return {};
}

// The callback of dl_iterate_phdr(), which calls it for the next module while it returns 0.
int look_into(dl_phdr_info* module, std::size_t /*bytes*/, void* data) {
    auto& search = *static_cast<Search*>(data);
    const std::span headers(module->dlpi_phdr, module->dlpi_phnum);
    const bool has_it = std::ranges::any_of(headers, [&](const ElfW(Phdr) & each) {
        return each.p_type == PT_LOAD && search.address - (module->dlpi_addr + each.p_vaddr) < each.p_memsz;
    });
    if (!has_it) return 0;
    const bool is_program = module->dlpi_name == nullptr || *module->dlpi_name == '\0';
    search.found.path = is_program ? "/proc/self/exe" : module->dlpi_name;
    for (const ElfW(Phdr) & each : headers)
        if (each.p_type == PT_NOTE && search.found.build_id.empty())
            search.found.build_id =
                build_id_in(reinterpret_cast<const char*>(module->dlpi_addr + each.p_vaddr), each.p_memsz);
    return 1;
}

}  // namespace

LoadedFile loaded_file_of(const void* address) {
    Search search{reinterpret_cast<std::uintptr_t>(address), {}};
    const NoForkMeanwhile whole;  // the loader has a lock
    (void)dl_iterate_phdr(&look_into, &search);
    return std::move(search.found);
}

}  // namespace rove
