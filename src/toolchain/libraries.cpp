#include "toolchain/libraries.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "base/elf.hpp"
#include "base/library_statics.hpp"
#include "package/bundle.hpp"
#include "toolchain/files.hpp"
#include "toolchain/process.hpp"

namespace rove::toolchain {
namespace {

std::unordered_set<std::string> defined_in(const Elf& elf, std::string_view table, bool strong = false) {
    std::unordered_set<std::string> names;
    const ElfSection* section = elf.find(table);
    if (section == nullptr) return names;
    const auto symbols = elf.symbols(*section);
    if (!symbols) return names;
    for (const ElfSymbol& symbol : *symbols)
        if (const unsigned bind = ELF64_ST_BIND(symbol.entry.st_info);
            symbol.entry.st_shndx != SHN_UNDEF && bind != STB_LOCAL && (!strong || bind != STB_WEAK))
            names.insert(symbol.name);
    return names;
}

// The names that an ELF file's dynamic section has under a tag.
std::vector<std::string> dynamic_names(const Elf& elf, Elf64_Sxword tag) {
    std::vector<std::string> names;
    const ElfSection *dynamic = elf.find(".dynamic"), *strings = elf.find(".dynstr");
    if (dynamic == nullptr || strings == nullptr) return names;
    const Bytes entries = elf.contents(*dynamic);
    const std::string_view text = as_text(elf.contents(*strings));
    for (std::size_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size(); at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry;
        std::memcpy(&entry, entries.data() + at, sizeof entry);
        if (entry.d_tag != tag || entry.d_un.d_val >= text.size()) continue;
        const std::string_view rest = text.substr(entry.d_un.d_val);
        names.emplace_back(rest.substr(0, rest.find('\0')));
    }
    return names;
}

// The paths at which the dynamic linker would find them: "libz.so.1 => /lib/…/libz.so.1 (0x…)".
std::map<std::string, std::filesystem::path> places_of(const std::filesystem::path& program) {
    std::map<std::string, std::filesystem::path> places;
    // This command's own dynamic linker, not one that the program names: no code of the program may run here.
    const Result<ByteBuffer> own = read_section("/proc/self/exe", ".interp");
    if (!own || own->empty()) return places;
    const std::string_view path = as_text(*own);
    const auto listed =
        run({std::string(path.substr(0, path.find('\0'))), "--list", std::filesystem::absolute(program).string()},
            "libc-bin");
    if (!listed) return places;
    std::istringstream lines(listed->out);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string soname, arrow, place;
        if (words >> soname >> arrow >> place && arrow == "=>" && place.starts_with('/')) places[soname] = place;
    }
    return places;
}

}  // namespace

ProgramNames ProgramNames::of(const std::filesystem::path& program) {
    const Result<ElfFile> file = ElfFile::open(program);
    if (!file) return {Libraries({}, {}), {}, {}, true};
    const Elf& elf = file->elf();
    std::map<std::string, std::unordered_set<std::string>> names;
    // The dynamic linker would run the libraries that audit the program.
    const bool is_audited = !dynamic_names(elf, DT_AUDIT).empty() || !dynamic_names(elf, DT_DEPAUDIT).empty();
    const auto places = is_audited ? std::map<std::string, std::filesystem::path>() : places_of(program);
    const std::vector<std::string> needed = dynamic_names(elf, DT_NEEDED);
    for (const std::string& soname : needed) {
        const auto place = places.find(soname);
        if (is_on_every_node(soname) || place == places.end()) continue;
        const Result<ElfFile> library = ElfFile::open(place->second);
        if (library) names[soname] = defined_in(library->elf(), ".dynsym");
    }
    const auto defines = [names = std::move(names)](const std::string& soname, const std::string& name) {
        const auto of_library = names.find(soname);
        return of_library != names.end() && of_library->second.contains(name);
    };
    const bool is_static =
        std::ranges::none_of(needed, [](const std::string& soname) { return soname.starts_with("libc.so"); });
    return {Libraries(needed, defines), defined_in(elf, ".symtab"), defined_in(elf, ".symtab", true), is_static};
}

bool ProgramNames::replaces_function_of_c(const std::string& name) const {
    return !is_static_ && is_strong(name) && is_function_of_c(name);
}

bool ProgramNames::only_program_has(const std::string& name) const {
    // Nodes provide what libgcc and libstdc++'s headers add to each program (node/library_names.cpp).
    if (name.starts_with("__cpu_") || std::ranges::find(kLibraryStatics, name) != kLibraryStatics.end()) return false;
    return own_.contains(name) && !every_node_has(name);
}

}  // namespace rove::toolchain
