#include "toolchain/image.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "base/elf.hpp"
#include "base/targets.hpp"
#include "toolchain/files.hpp"

namespace rove::toolchain {
namespace {

constexpr std::uint64_t kBlockAddress = 0x100000;
constexpr std::string_view kBlock = ".rove.block";
constexpr std::string_view kData = ".rove.data";

// GOT first, then the arrays that are aligned as it is, then code, then all that is read only. The names mark what the loader must find.
// Plain .data holds the pointers that exception tables reach by distance, never a static (emit.cpp requests separate sections for those).
// What only a dynamic linker would read is outside and is not sent.
std::string script(std::uint64_t data_address) {
    return fmt::format(R"(SECTIONS {{
  . = {:#x};
  .rove.block : {{
    *(.got) *(.got.plt)
    rove.init.begin = .; KEEP(*(SORT_BY_INIT_PRIORITY(.init_array.*) .init_array)) rove.init.end = .;
    rove.fini.begin = .; KEEP(*(SORT_BY_INIT_PRIORITY(.fini_array.*) .fini_array)) rove.fini.end = .;
    *(.text .text.*)
    *(.rodata .rodata.*)
    *(.data.rel.ro .data.rel.ro.*) *(.data .data.DW.ref.*)
    *(.gcc_except_table .gcc_except_table.*)
    rove.eh.begin = ALIGN(8); *(.eh_frame) rove.eh.end = .;
  }}
  . = {:#x};
  .rove.data : {{ *(.data.*) *(.bss .bss.*) *(COMMON) }}
  /DISCARD/ : {{ *(.comment) *(.note .note.*) *(.llvm_addrsig) *(.eh_frame_hdr) }}
}}
)",
                       kBlockAddress, data_address);
}

Result<ByteBuffer> link(bitcode::Compiler& compiler, const ImageRequest& request, std::uint64_t data_address) {
    const std::filesystem::path object = request.folder / "image.o", linked = request.folder / "image.so",
                                text = request.folder / "image.ld";
    ROVE_CHECK(write_file(object, request.object));
    ROVE_CHECK(write_file(text, as_bytes(script(data_address))));
    std::vector<std::string> arguments{object.string()};
    for (const std::filesystem::path& other : request.others) arguments.push_back(other.string());
    arguments.insert(arguments.end(),
                     {"-shared", "-z", "norelro", "-z", "notext", "-z", "noseparate-code", "-z", "max-page-size=4096",
                      "--hash-style=sysv", "--build-id=none", "--no-eh-frame-hdr", "--no-rosegment",
                      "--orphan-handling=place", "-T", text.string(), "-o", linked.string()});
    const Status done = compiler.link(arguments);
    if (!done && says_no_room(done.error().message()))
        return fail(ErrorCode::failed, "it cannot be linked: {}", no_room_for_temporary_files());
    ROVE_CHECK(done);
    return read_file(linked);
}

struct Span {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    // The address one past the end counts, because code may compute it.
    [[nodiscard]] bool holds(std::uint64_t at) const { return at >= address && at <= address + bytes && bytes > 0; }
};

class Cutter {
public:
    Cutter(const Elf& elf, const ImageRequest& request) : elf_(elf), request_(request) {}

    Result<wire::Image> cut() {
        ROVE_CHECK(take_segments());
        ROVE_CHECK(take_relocations());
        ROVE_CHECK(take_symbols());
        return std::move(image_);
    }

private:
    Status take_segments() {
        for (const ElfSection& section : elf_.sections()) {
            const Elf64_Shdr& header = section.header;
            if ((header.sh_flags & SHF_ALLOC) == 0 || header.sh_size == 0) continue;
            if (section.name == kBlock) {
                block_ = {header.sh_addr, header.sh_size};
                const Bytes bytes = elf_.contents(section);
                image_.block.assign(bytes.begin(), bytes.end());
            } else if (section.name == kData) {
                if (header.sh_size > wire::kImageDataBytesMax)
                    return fail(ErrorCode::unsupported, "it has {} bytes of statics", header.sh_size);
                data_ = {header.sh_addr, header.sh_size};
                const Bytes bytes = elf_.contents(section);
                image_.data.assign(bytes.begin(), bytes.end());
                while (!image_.data.empty() && image_.data.back() == std::byte{0}) image_.data.pop_back();
                image_.data_bytes = static_cast<std::uint32_t>(header.sh_size);
                image_.data_alignment = static_cast<std::uint32_t>(std::max<std::uint64_t>(header.sh_addralign, 1));
            } else if (header.sh_type == SHT_PROGBITS || header.sh_type == SHT_NOBITS || header.sh_type == SHT_NOTE) {
                return fail(ErrorCode::unsupported, "it has a section {} that an image has no place for", section.name);
            }
        }
        if (image_.block.empty()) return fail(ErrorCode::unsupported, "it has no code");
        return {};
    }

    Status take_relocations() {
        for (const ElfSection& section : elf_.sections()) {
            if (section.header.sh_type == SHT_REL)
                return fail(ErrorCode::unsupported, "it has relocations without addends");
            if (section.header.sh_type != SHT_RELA) continue;
            if (section.header.sh_link >= elf_.sections().size())
                return fail(ErrorCode::internal, "relocations without symbols");
            ROVE_TRY(const std::vector<ElfSymbol> symbols, elf_.symbols(elf_.sections()[section.header.sh_link]));
            const Bytes entries = elf_.contents(section);
            for (std::size_t offset = 0; offset + sizeof(Elf64_Rela) <= entries.size(); offset += sizeof(Elf64_Rela)) {
                Elf64_Rela entry;
                std::memcpy(&entry, entries.data() + offset, sizeof entry);
                ROVE_CHECK(take(entry, symbols));
            }
        }
        return {};
    }

    Status take(const Elf64_Rela& entry, const std::vector<ElfSymbol>& symbols) {
        const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(entry.r_info));
        const Target* const target = target_of_machine(elf_.machine());
        if (target == nullptr) return fail(ErrorCode::unsupported, "it is for a machine that no code is made for");
        const std::size_t number = ELF64_R_SYM(entry.r_info);
        wire::Relocation relocation;
        const bool in_data = !block_.holds(entry.r_offset) || entry.r_offset >= block_.address + block_.bytes;
        if (in_data && !data_.holds(entry.r_offset))
            return fail(ErrorCode::unsupported, "it has a relocation outside code and statics");
        relocation.where = in_data ? wire::Segment::data : wire::Segment::block;
        relocation.offset = static_cast<std::uint32_t>(entry.r_offset - (in_data ? data_ : block_).address);
        std::uint64_t address = static_cast<std::uint64_t>(entry.r_addend);
        if (type != target->relative) {
            if (!target->is_address(type) || number >= symbols.size())
                return fail(ErrorCode::unsupported, "it has a relocation of type {}", type);
            const ElfSymbol& symbol = symbols[number];
            if (symbol.entry.st_shndx == SHN_UNDEF) return take_import(relocation, symbol.name, entry.r_addend);
            address += symbol.entry.st_value;
        }
        // The data may begin where the block ends: that address belongs to the data.
        const bool to_data =
            data_.holds(address) && !(block_.holds(address) && address < block_.address + block_.bytes);
        if (!to_data && !block_.holds(address))
            return fail(ErrorCode::unsupported, "it has an address of something outside code and statics");
        relocation.kind = to_data ? wire::Relocation::Kind::data : wire::Relocation::Kind::block;
        relocation.addend = static_cast<std::int64_t>(address - (to_data ? data_ : block_).address);
        image_.relocations.push_back(relocation);
        return {};
    }

    Status take_import(wire::Relocation relocation, const std::string& name, std::int64_t addend) {
        const auto found = std::find(request_.imports.begin(), request_.imports.end(), name);
        if (found == request_.imports.end())
            return fail(ErrorCode::internal, "'{}' is imported but was not expected", name);
        relocation.kind = wire::Relocation::Kind::import;
        relocation.import = static_cast<std::uint32_t>(found - request_.imports.begin());
        relocation.addend = addend;
        image_.relocations.push_back(relocation);
        return {};
    }

    [[nodiscard]] std::optional<wire::Symbol> known(const ElfSymbol& symbol) const {
        const auto numbered = [&symbol](wire::Symbol::Kind kind,
                                        const std::vector<std::string>& names) -> std::optional<wire::Symbol> {
            const auto found = std::find(names.begin(), names.end(), symbol.name);
            if (found == names.end()) return std::nullopt;
            return wire::Symbol{kind, wire::Segment::block, static_cast<std::uint32_t>(found - names.begin()), 0};
        };
        using Kind = wire::Symbol::Kind;
        for (const auto& [prefix, kind] :
             {std::pair(wire::kStaticPrefix, Kind::static_), std::pair(wire::kAnchorPrefix, Kind::anchor)}) {
            if (!symbol.name.starts_with(prefix)) continue;
            wire::Symbol place{kind, wire::Segment::block, 0, 0};
            const char* last = symbol.name.data() + symbol.name.size();
            if (std::from_chars(symbol.name.data() + prefix.size(), last, place.index).ptr == last) return place;
        }
        if (const auto entry = numbered(wire::Symbol::Kind::entry, request_.entries)) return entry;
        return numbered(wire::Symbol::Kind::exported, request_.exports);
    }

    Status take_symbols() {
        const ElfSection* table = elf_.find(".symtab");
        if (table == nullptr) return fail(ErrorCode::internal, "the linked image has no symbols");
        ROVE_TRY(const std::vector<ElfSymbol> symbols, elf_.symbols(*table));
        std::unordered_map<std::string, std::uint64_t> marks;
        for (const ElfSymbol& symbol : symbols) {
            const std::uint64_t value = symbol.entry.st_value;
            if (symbol.name.starts_with("rove.") && !known(symbol)) marks[symbol.name] = value - block_.address;
            if (symbol.entry.st_shndx == SHN_UNDEF) continue;
            // A name that the linker defines itself (__ehdr_start) is a place in an ELF file, and an image is not one.
            if (std::find(request_.imports.begin(), request_.imports.end(), symbol.name) != request_.imports.end())
                return fail(ErrorCode::unsupported, "the linker gives '{}' a meaning of its own", symbol.name);
            if (symbol.entry.st_shndx == SHN_ABS) continue;
            std::optional<wire::Symbol> place = known(symbol);
            if (!place) continue;
            const bool in_data = data_.holds(value) && !(value < block_.address + block_.bytes);
            place->segment = in_data ? wire::Segment::data : wire::Segment::block;
            place->offset = static_cast<std::uint32_t>(value - (in_data ? data_ : block_).address);
            image_.symbols.push_back(*place);
            // A function of an interface may be both an entry and an export: it gets a symbol of each kind.
            if (place->kind == wire::Symbol::Kind::entry) {
                const auto twice = std::find(request_.exports.begin(), request_.exports.end(), symbol.name);
                if (twice != request_.exports.end())
                    image_.symbols.push_back({wire::Symbol::Kind::exported, place->segment,
                                              static_cast<std::uint32_t>(twice - request_.exports.begin()),
                                              place->offset});
            }
        }
        std::sort(image_.symbols.begin(), image_.symbols.end(), [](const wire::Symbol& a, const wire::Symbol& b) {
            return std::tie(a.kind, a.index) < std::tie(b.kind, b.index);
        });
        take_tables(marks);
        return {};
    }

    void take_tables(const std::unordered_map<std::string, std::uint64_t>& marks) {
        const auto table = [&marks](const std::string& name, std::uint32_t& offset, std::uint32_t& size,
                                    std::uint32_t unit) {
            const auto begin = marks.find(name + ".begin"), end = marks.find(name + ".end");
            if (begin == marks.end() || end == marks.end() || end->second <= begin->second) return;
            offset = static_cast<std::uint32_t>(begin->second);
            size = static_cast<std::uint32_t>(end->second - begin->second) / unit;
        };
        table("rove.init", image_.init_array_offset, image_.init_array_count, 8);
        table("rove.fini", image_.fini_array_offset, image_.fini_array_count, 8);
        table("rove.eh", image_.eh_frame_offset, image_.eh_frame_bytes, 1);
        if (image_.eh_frame_bytes == 0) return;
        // The unwinder stops at a zero word. The table is the block's last part, so there is room for one after it.
        image_.block.resize(image_.eh_frame_offset + image_.eh_frame_bytes);
        image_.block.resize(image_.block.size() + 4);
        image_.eh_frame_bytes += 4;
    }

    const Elf& elf_;
    const ImageRequest& request_;
    Span block_, data_;
    wire::Image image_;
};

Result<wire::Image> link_and_cut(bitcode::Compiler& compiler, const ImageRequest& request, std::uint64_t data_address) {
    ROVE_TRY(const ByteBuffer file, link(compiler, request, data_address));
    const Result<Elf> elf = Elf::parse(file);
    if (!elf) return fail(ErrorCode::internal, "the linker's output is {}", elf.error().message());
    return Cutter(*elf, request).cut();
}

}  // namespace

Result<wire::Image> link_image(bitcode::Compiler& compiler, const ImageRequest& request) {
    ROVE_TRY(wire::Image image, link_and_cut(compiler, request, 0x40000000));
    // The loader places the statics anywhere, so code must reach them through the GOT alone. To check that, the image is linked a second
    // time with the statics at another address: if the two differ, the code reaches statics by their distance.
    ROVE_TRY(const wire::Image moved, link_and_cut(compiler, request, 0x48000000));
    if (image != moved) return fail(ErrorCode::unsupported, "its code reaches statics by their distance from it");
    // The nodes' own reader makes the last check: an image with too many symbols or statics is refused here already.
    Result<wire::Image> read = wire::decode_image(wire::encode(image), request.imports.size());
    if (!read) return fail(ErrorCode::unsupported, "{}", read.error().message());
    return read;
}

}  // namespace rove::toolchain
