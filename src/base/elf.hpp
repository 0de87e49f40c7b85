// Reading 64-bit ELF files: sections and symbols. Every offset is checked.
//
// Threads: any; the bytes are borrowed. Invariant: an Elf never changes once it is parsed.
#pragma once

#include <elf.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/mapping.hpp"
#include "base/result.hpp"

namespace rove {

struct ElfSection {
    std::string name;
    Elf64_Shdr header;
};

struct ElfSymbol {
    std::string name;
    Elf64_Sym entry;
};

class Elf {
public:
    // Borrows the bytes. invalid: they are no 64-bit ELF file, or incomplete.
    [[nodiscard]] static Result<Elf> parse(Bytes file);

    [[nodiscard]] const std::vector<ElfSection>& sections() const { return sections_; }
    [[nodiscard]] const ElfSection* find(std::string_view name) const;
    [[nodiscard]] Bytes contents(const ElfSection& section) const;  // empty for SHT_NOBITS
    [[nodiscard]] Result<std::vector<ElfSymbol>> symbols(const ElfSection& table) const;
    [[nodiscard]] std::uint16_t machine() const { return machine_; }

private:
    Bytes file_;
    std::vector<ElfSection> sections_;
    std::uint16_t machine_ = EM_NONE;
};

// An ELF file on disk, mapped, so that only the parts that are used are read. The file must not be shortened while it is mapped.
class ElfFile {
public:
    // invalid: it cannot be read, or is no ELF file; the message names it.
    [[nodiscard]] static Result<ElfFile> open(const std::string& path);
    [[nodiscard]] const Elf& elf() const { return elf_; }

private:
    ElfFile(Mapping file, Elf elf) : file_(std::move(file)), elf_(std::move(elf)) {}
    Mapping file_;
    Elf elf_;
};

// A copy of a section of the file at that path; empty: it has none.
[[nodiscard]] Result<ByteBuffer> read_section(const std::string& path, std::string_view section);

}  // namespace rove
