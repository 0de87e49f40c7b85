#include "wire/image.hpp"

#include <algorithm>
#include <bit>

#include "wire/unwind.hpp"

namespace rove::wire {
namespace {

// The head is 16 numbers; parts that most images lack (data, constructors, unwind tables) are left out by the flags, so that a counter
// increment with two imports has less than 200 bytes.
constexpr std::uint32_t kMagic = 0x31495652;  // "RVI1"
constexpr std::uint8_t kHasData = 1;
constexpr std::uint8_t kHasUnwind = 2;
constexpr std::uint8_t kHasArrays = 4;
constexpr std::uint8_t kFlagsKnown = kHasData | kHasUnwind | kHasArrays;
// The smallest encodings, as take_relocation and take_symbol read them: a slice cannot announce more of them than its bytes hold.
constexpr std::size_t kRelocationBytesMin = 9;      // offset 4, kind 1, target 4
constexpr std::size_t kSymbolBytes = 9;             // kind 1, index 4, offset 4
constexpr std::size_t kRelocationsMax = 1U << 20U;  // 32 MiB once they are read
constexpr std::size_t kSymbolsMax = 1U << 20U;      // 12 MiB

std::uint8_t flags_of(const Image& image) {
    std::uint8_t flags = 0;
    if (image.data_bytes != 0) flags |= kHasData;
    if (image.eh_frame_bytes != 0) flags |= kHasUnwind;
    if (image.init_array_count != 0 || image.fini_array_count != 0) flags |= kHasArrays;
    return flags;
}

bool inside(std::uint64_t offset, std::uint64_t bytes, std::uint64_t of) {
    return offset <= of && bytes <= of - offset;
}

Status check_shape(const Image& image) {
    const std::uint64_t block = image.block.size();
    if (block == 0) return fail(ErrorCode::invalid, "image: no code");
    if (image.data_bytes > kImageDataBytesMax)
        return fail(ErrorCode::invalid, "image: {} bytes of statics, over the limit of {}", image.data_bytes,
                    kImageDataBytesMax);
    if (image.data.size() > image.data_bytes)
        return fail(ErrorCode::invalid, "image: more statics than it has room for");
    if (!std::has_single_bit(image.data_alignment) || image.data_alignment > kAlignmentMax)
        return fail(ErrorCode::invalid, "image: statics aligned to {}", image.data_alignment);
    const auto array = [block](std::uint32_t offset, std::uint32_t count) {
        return offset % 8 == 0 && inside(offset, std::uint64_t{8} * count, block);
    };
    if (!inside(image.eh_frame_offset, image.eh_frame_bytes, block) ||
        !array(image.init_array_offset, image.init_array_count) ||
        !array(image.fini_array_offset, image.fini_array_count))
        return fail(ErrorCode::invalid, "image: a table lies outside the code");
    if (image.eh_frame_bytes == 0) return {};
    const Status table =
        check_unwind_table({.block = image.block, .offset = image.eh_frame_offset, .bytes = image.eh_frame_bytes});
    return table ? table : prefixed(table.error(), "image");
}

Status check_places(const Image& image, std::size_t import_count) {
    const auto bytes_of = [&image](Segment segment) -> std::uint64_t {
        return segment == Segment::block ? image.block.size() : image.data_bytes;
    };
    for (const Relocation& each : image.relocations) {
        // The slot is written before any code runs, whether it is in the initialised part or not; it must be inside its segment.
        if (!inside(each.offset, 8, bytes_of(each.where)))
            return fail(ErrorCode::invalid, "image: a relocation outside its segment");
        // The unwind table is checked in this state, so no relocation may change it afterwards.
        if (each.where == Segment::block && each.offset + std::uint64_t{8} > image.eh_frame_offset &&
            each.offset < std::uint64_t{image.eh_frame_offset} + image.eh_frame_bytes)
            return fail(ErrorCode::invalid, "image: a relocation within its unwind table");
        if (each.kind == Relocation::Kind::import && each.import >= import_count)
            return fail(ErrorCode::invalid, "image: a relocation to import {} of {}", each.import, import_count);
        // One past the end is an address that C code may form.
        const std::uint64_t limit = each.kind == Relocation::Kind::block ? image.block.size() : image.data_bytes;
        if (each.kind != Relocation::Kind::import &&
            (each.addend < 0 || static_cast<std::uint64_t>(each.addend) > limit))
            return fail(ErrorCode::invalid, "image: a relocation to a place outside the image");
    }
    std::int64_t last_static = -1, last_entry = -1;
    for (const Symbol& each : image.symbols) {
        if (each.offset >= bytes_of(each.segment) && !(each.segment == Segment::data && each.offset == 0))
            return fail(ErrorCode::invalid, "image: a symbol outside its segment");
        if (each.kind == Symbol::Kind::entry && each.index <= last_entry)
            return fail(ErrorCode::invalid, "image: an entry twice, or out of its order");
        if (each.kind == Symbol::Kind::entry) last_entry = each.index;
        if (each.kind != Symbol::Kind::static_) continue;
        if (each.segment != Segment::data) return fail(ErrorCode::invalid, "image: a static that is not in its data");
        if (each.index <= last_static) return fail(ErrorCode::invalid, "image: a static twice, or out of its order");
        last_static = each.index;
    }
    return {};
}

}  // namespace

ByteBuffer encode(const Image& image) {
    Writer out;
    const std::uint8_t flags = flags_of(image);
    out.number(kMagic);
    out.number(static_cast<std::uint32_t>(image.block.size()));
    out.number(static_cast<std::uint32_t>(image.relocations.size()));
    out.number(static_cast<std::uint16_t>(image.symbols.size()));
    out.number(flags);
    out.number(static_cast<std::uint8_t>(image.symbols.size() >> 16U));
    out.bytes(image.block);  // at offset 16: the alignment that suits code
    if ((flags & kHasData) != 0) {
        out.number(image.data_bytes);
        out.number(image.data_alignment);
        out.number(static_cast<std::uint32_t>(image.data.size()));
        out.bytes(image.data);
    }
    if ((flags & kHasUnwind) != 0) {
        out.number(image.eh_frame_offset);
        out.number(image.eh_frame_bytes);
    }
    if ((flags & kHasArrays) != 0)
        for (const std::uint32_t number :
             {image.init_array_offset, image.init_array_count, image.fini_array_offset, image.fini_array_count})
            out.number(number);
    for (const Relocation& each : image.relocations) {
        const bool import = each.kind == Relocation::Kind::import;
        const bool has_addend = import && each.addend != 0;
        out.number(each.offset);
        out.number(static_cast<std::uint8_t>(static_cast<unsigned>(each.where) |
                                             static_cast<unsigned>(each.kind) << 1U | (has_addend ? 8U : 0U)));
        out.number(import ? each.import : static_cast<std::uint32_t>(each.addend));
        if (has_addend) out.number(static_cast<std::uint64_t>(each.addend));
    }
    for (const Symbol& each : image.symbols) {
        out.number(
            static_cast<std::uint8_t>(static_cast<unsigned>(each.kind) << 1U | static_cast<unsigned>(each.segment)));
        out.number(each.index);
        out.number(each.offset);
    }
    return out.take();
}

namespace {

Result<Relocation> take_relocation(Reader& in) {
    Relocation each;
    each.offset = in.number<std::uint32_t>();
    const auto bits = in.number<std::uint8_t>();
    const auto target = in.number<std::uint32_t>();
    if ((bits >> 1U & 3U) > 2 || bits > 15) return fail(ErrorCode::invalid, "image: a relocation of unknown kind");
    each.where = static_cast<Segment>(bits & 1U);
    each.kind = static_cast<Relocation::Kind>(bits >> 1U & 3U);
    const bool import = each.kind == Relocation::Kind::import;
    if ((bits & 8U) != 0 && !import) return fail(ErrorCode::invalid, "image: a relocation of unknown kind");
    if (import)
        each.import = target;
    else
        each.addend = target;
    if ((bits & 8U) != 0) {
        each.addend = static_cast<std::int64_t>(in.number<std::uint64_t>());
        if (in.ok() && each.addend == 0) return fail(ErrorCode::invalid, "image: an addend that need not be there");
    }
    return each;
}

Result<Symbol> take_symbol(Reader& in) {
    Symbol each;
    const auto bits = in.number<std::uint8_t>();
    if (bits > 7) return fail(ErrorCode::invalid, "image: a symbol of unknown kind");
    each.kind = static_cast<Symbol::Kind>(bits >> 1U);
    each.segment = static_cast<Segment>(bits & 1U);
    each.index = in.number<std::uint32_t>();
    each.offset = in.number<std::uint32_t>();
    return each;
}

ByteBuffer copy(Bytes bytes) {
    return {bytes.begin(), bytes.end()};
}

}  // namespace

Result<Image> decode_image(Bytes bytes, std::size_t import_count) {
    Reader in(bytes);
    Image image;
    if (in.number<std::uint32_t>() != kMagic)
        return fail(ErrorCode::invalid, "not an image: it does not begin with RVI1");
    const auto block_bytes = in.number<std::uint32_t>();
    const auto relocations = in.number<std::uint32_t>();
    const auto symbols_low = in.number<std::uint16_t>();
    const auto flags = in.number<std::uint8_t>();
    const std::size_t symbols = symbols_low | std::size_t{in.number<std::uint8_t>()} << 16U;
    if ((flags & ~kFlagsKnown) != 0 || relocations > kRelocationsMax || symbols > kSymbolsMax)
        return fail(ErrorCode::invalid, "image: a head that this version of Rove does not know");
    image.block = copy(in.take(block_bytes));
    if ((flags & kHasData) != 0) {
        image.data_bytes = in.number<std::uint32_t>();
        image.data_alignment = in.number<std::uint32_t>();
        image.data = copy(in.take(in.number<std::uint32_t>()));
    }
    if ((flags & kHasUnwind) != 0) {
        image.eh_frame_offset = in.number<std::uint32_t>();
        image.eh_frame_bytes = in.number<std::uint32_t>();
    }
    if ((flags & kHasArrays) != 0)
        for (std::uint32_t* number :
             {&image.init_array_offset, &image.init_array_count, &image.fini_array_offset, &image.fini_array_count})
            *number = in.number<std::uint32_t>();
    if (!in.ok() || relocations * kRelocationBytesMin + symbols * kSymbolBytes > in.rest().size())
        return fail(ErrorCode::invalid, "image: truncated");
    image.relocations.reserve(relocations);
    image.symbols.reserve(symbols);
    for (std::size_t i = 0; i < relocations && in.ok(); ++i) {
        ROVE_TRY(const Relocation each, take_relocation(in));
        image.relocations.push_back(each);
    }
    for (std::size_t i = 0; i < symbols && in.ok(); ++i) {
        ROVE_TRY(const Symbol each, take_symbol(in));
        image.symbols.push_back(each);
    }
    if (!in.ok()) return fail(ErrorCode::invalid, "image: truncated");
    if (!in.done()) return fail(ErrorCode::invalid, "image: {} bytes too many", in.rest().size());
    if (flags != flags_of(image)) return fail(ErrorCode::invalid, "image: a part that is announced and empty");
    ROVE_CHECK(check_shape(image));
    ROVE_CHECK(check_places(image, import_count));
    return image;
}

}  // namespace rove::wire
