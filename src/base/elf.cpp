#include "base/elf.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

#include "base/descriptor.hpp"

namespace rove {
namespace {

template <typename T>
std::optional<T> at(Bytes file, std::uint64_t offset) {
    if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, file.data() + offset, sizeof value);
    return value;
}

std::string text_at(Bytes strings, std::uint64_t offset) {
    if (offset >= strings.size()) return {};
    const std::string_view rest = as_text(strings.subspan(offset));
    return std::string(rest.substr(0, rest.find('\0')));
}

tl::unexpected<Error> broken() {
    return fail(ErrorCode::invalid, "no 64-bit ELF file, or not all of one");
}

}  // namespace

Result<Elf> Elf::parse(Bytes file) {
    Elf elf;
    elf.file_ = file;
    const auto header = at<Elf64_Ehdr>(file, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_shentsize != sizeof(Elf64_Shdr))
        return broken();
    elf.machine_ = header->e_machine;
    if (header->e_shnum == 0) return elf;  // the section names were stripped
    for (unsigned i = 0; i < header->e_shnum; ++i) {
        const auto section = at<Elf64_Shdr>(file, header->e_shoff + std::uint64_t{i} * sizeof(Elf64_Shdr));
        if (!section) return broken();
        if (section->sh_type != SHT_NOBITS &&
            (section->sh_offset > file.size() || file.size() - section->sh_offset < section->sh_size))
            return broken();
        elf.sections_.push_back({{}, *section});
    }
    if (header->e_shstrndx >= elf.sections_.size()) return broken();
    const Bytes names = elf.contents(elf.sections_[header->e_shstrndx]);
    for (ElfSection& section : elf.sections_) section.name = text_at(names, section.header.sh_name);
    return elf;
}

const ElfSection* Elf::find(std::string_view name) const {
    for (const ElfSection& section : sections_)
        if (section.name == name) return &section;
    return nullptr;
}

Bytes Elf::contents(const ElfSection& section) const {
    if (section.header.sh_type == SHT_NOBITS) return {};
    return file_.subspan(section.header.sh_offset, section.header.sh_size);
}

Result<std::vector<ElfSymbol>> Elf::symbols(const ElfSection& table) const {
    if (table.header.sh_link >= sections_.size()) return broken();
    const Bytes strings = contents(sections_[table.header.sh_link]);
    const Bytes entries = contents(table);
    std::vector<ElfSymbol> symbols;
    for (std::size_t offset = 0; offset + sizeof(Elf64_Sym) <= entries.size(); offset += sizeof(Elf64_Sym)) {
        const Elf64_Sym entry = *at<Elf64_Sym>(entries, offset);
        symbols.push_back({text_at(strings, entry.st_name), entry});
    }
    return symbols;
}

Result<ElfFile> ElfFile::open(const std::string& path) {
    const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat facts{};
    if (descriptor.number() < 0 || fstat(descriptor.number(), &facts) != 0)
        return fail(ErrorCode::invalid, "{} cannot be read", path);
    const auto bytes = static_cast<std::size_t>(facts.st_size);
    Mapping mapped(mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor.number(), 0), bytes);
    if (!mapped) return fail(ErrorCode::invalid, "{} is no file that can be mapped", path);
    Result<Elf> elf = Elf::parse({mapped.start(), bytes});
    if (!elf) return fail(ErrorCode::invalid, "{} is {}", path, elf.error().message());
    return ElfFile(std::move(mapped), *std::move(elf));
}

Result<ByteBuffer> read_section(const std::string& path, std::string_view section) {
    ROVE_TRY(const ElfFile file, ElfFile::open(path));
    const ElfSection* const found = file.elf().find(section);
    if (found == nullptr) return ByteBuffer{};
    const Bytes bytes = file.elf().contents(*found);
    return ByteBuffer(bytes.begin(), bytes.end());
}

}  // namespace rove
