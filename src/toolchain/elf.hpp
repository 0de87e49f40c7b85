// Reading the shared object that lld made: the few things an image is cut from. Every offset is checked, though the file is
// our own linker's.
#pragma once

#include <elf.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace rove::toolchain {

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

}  // namespace rove::toolchain
