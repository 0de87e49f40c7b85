// Reading ELF files: this program's own, and files that are none.
#include "base/elf.hpp"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/own_library.hpp"

namespace rove::test {
namespace {

ByteBuffer own_file() {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const Bytes bytes = as_bytes(text);
    return {bytes.begin(), bytes.end()};
}

TEST(Elf, SectionsAndSymbolsOfAProgram) {
    const ByteBuffer file = own_file();
    const Result<Elf> elf = Elf::parse(file);
    ASSERT_TRUE(elf) << elf.error().message();
    const ElfSection* const code = elf->find(".text");
    ASSERT_NE(code, nullptr);
    EXPECT_FALSE(elf->contents(*code).empty());
    const ElfSection* const zeros = elf->find(".bss");
    ASSERT_NE(zeros, nullptr);
    EXPECT_TRUE(elf->contents(*zeros).empty());
    EXPECT_EQ(elf->find(".nothing"), nullptr);
    const ElfSection* const table = elf->find(".symtab");
    ASSERT_NE(table, nullptr);
    const auto symbols = elf->symbols(*table);
    ASSERT_TRUE(symbols);
    EXPECT_TRUE(std::ranges::any_of(*symbols, [](const ElfSymbol& each) { return each.name == "main"; }));
}

TEST(Elf, AFileThatIsCutOffIsRefused) {
    const ByteBuffer file = own_file();
    Elf64_Ehdr header;
    std::memcpy(&header, file.data(), sizeof header);
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{4}, sizeof header - 1, sizeof header,
                                    static_cast<std::size_t>(header.e_shoff), file.size() - 1})
        EXPECT_FALSE(Elf::parse(Bytes(file).first(bytes))) << bytes;
}

TEST(Elf, WhatLiesOutsideOfTheFileIsRefused) {
    const ByteBuffer file = own_file();
    const auto with = [&file](auto change) {
        ByteBuffer changed = file;
        auto* const header = reinterpret_cast<Elf64_Ehdr*>(changed.data());
        change(*header, reinterpret_cast<Elf64_Shdr*>(changed.data() + header->e_shoff));
        return Elf::parse(changed).has_value();
    };
    EXPECT_TRUE(with([](Elf64_Ehdr&, Elf64_Shdr*) {}));
    EXPECT_FALSE(with([](Elf64_Ehdr& header, Elf64_Shdr*) { header.e_ident[EI_CLASS] = ELFCLASS32; }));
    EXPECT_FALSE(with([](Elf64_Ehdr& header, Elf64_Shdr*) { header.e_shoff = ~0ULL - 8; }));
    EXPECT_FALSE(with([](Elf64_Ehdr& header, Elf64_Shdr*) { header.e_shentsize = 1; }));
    EXPECT_FALSE(with([](Elf64_Ehdr& header, Elf64_Shdr*) { header.e_shstrndx = header.e_shnum; }));
    EXPECT_FALSE(with([](Elf64_Ehdr&, Elf64_Shdr* sections) { sections[1].sh_offset = ~0ULL - 1; }));
    EXPECT_FALSE(with([](Elf64_Ehdr&, Elf64_Shdr* sections) { sections[1].sh_size = ~0ULL; }));
    EXPECT_TRUE(with([](Elf64_Ehdr&, Elf64_Shdr* sections) { sections[1].sh_name = ~0U; })) << "it has no name";
}

TEST(Elf, SectionsOfFilesByTheirNames) {
    const Result<ByteBuffer> nowhere = read_section("/nowhere", ".rove");
    ASSERT_FALSE(nowhere);
    EXPECT_NE(nowhere.error().message().find("/nowhere"), std::string::npos);
    EXPECT_FALSE(read_section("/proc/self/maps", ".rove"));
    EXPECT_FALSE(read_section("/proc/self", ".rove"));
    EXPECT_FALSE(read_section("/etc/passwd", ".rove"));
    const auto own = read_section("/proc/self/exe", ".rodata");
    ASSERT_TRUE(own);
    EXPECT_FALSE(own->empty());
    const auto none = read_section("/proc/self/exe", ".nothing");
    ASSERT_TRUE(none);
    EXPECT_TRUE(none->empty());
}

TEST(Elf, TheBuildOfAProgramIsThatOfItsFile) {
    const Result<ByteBuffer> note = read_section("/proc/self/exe", ".note.gnu.build-id");
    ASSERT_TRUE(note);
    ASSERT_GT(note->size(), 16U) << "the linker was not asked for it";
    std::string text;
    for (const std::byte each : Bytes(*note).subspan(16)) text += fmt::format("{:02x}", std::to_integer<int>(each));
    const int of_the_stack = 0;
    EXPECT_EQ(build_of(reinterpret_cast<const void*>(&own_file)), text);
    EXPECT_NE(build_of(reinterpret_cast<const void*>(&gnu_get_libc_version)), text) << "that is libc";
    EXPECT_EQ(build_of(&of_the_stack), "");
}

}  // namespace
}  // namespace rove::test
