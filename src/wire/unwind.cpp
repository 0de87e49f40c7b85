#include "wire/unwind.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace rove::wire {
namespace {

// How a pointer is encoded: the low four bits are its size and sign, the next three its base. Only
// pointers relative to their own position are meaningful in code that is copied to any address.
// (DWARF exception header encoding, Linux Standard Base Core 5.0, 10.5.1.)
constexpr std::uint8_t kSigned4 = 0x0B;
constexpr std::uint8_t kSigned8 = 0x0C;
constexpr std::uint8_t kFromItself = 0x10;
constexpr std::uint8_t kIndirect = 0x80;  // the place holds the address
constexpr std::uint8_t kOmitted = 0xFF;

Error malformed(std::string_view what) {
    return {ErrorCode::invalid, fmt::format("an unwind table {}", what)};
}

std::size_t size_of(std::uint8_t encoding) {
    return (encoding & 0x0FU) == kSigned8 ? 8 : 4;
}

// The part that the records of functions share.
struct Common {
    std::uint8_t code = 0;  // encoding of a function's start
    std::uint8_t exceptions = kOmitted;
};

// One record, after its length. Positions count from the block's beginning.
class Record {
public:
    Record(Bytes block, std::size_t at, std::size_t bytes) : block_(block), at_(at), end_(at + bytes) {}

    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] std::size_t at() const { return at_; }
    [[nodiscard]] std::size_t left() const { return end_ - at_; }

    template <typename T>
    T number() {
        T value{};
        if (!ok_ || left() < sizeof value) {
            ok_ = false;
            return value;
        }
        std::memcpy(&value, block_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    // Reads a number of seven bits a byte, the lowest first.
    std::uint64_t variable() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; ok_; shift += 7) {
            const auto byte = number<std::uint8_t>();
            if (shift >= 63) ok_ = false;
            value |= std::uint64_t{byte & 0x7FU} << shift;
            if ((byte & 0x80U) == 0) break;
        }
        return value;
    }
    std::string_view text() {
        const std::string_view rest = as_text(block_.subspan(at_, left()));
        const std::size_t zero = rest.find('\0');
        if (zero == std::string_view::npos) {
            ok_ = false;
            return {};
        }
        at_ += zero + 1;
        return rest.substr(0, zero);
    }
    // Reads a pointer: its target in the block; nothing: the target is outside of it, or less than `room` bytes from its end.
    std::optional<std::size_t> pointer(std::uint8_t encoding, std::size_t room) {
        const auto here = static_cast<std::int64_t>(at_);
        const std::int64_t distance =
            size_of(encoding) == 8 ? number<std::int64_t>() : std::int64_t{number<std::int32_t>()};
        const auto size = static_cast<std::int64_t>(block_.size());
        if (!ok_ || distance < -here || distance > size - here) return std::nullopt;
        const auto target = static_cast<std::size_t>(here + distance);
        if (block_.size() - target < room) return std::nullopt;
        return target;
    }
    [[nodiscard]] bool reaches(std::size_t begin, std::uint64_t bytes) const { return bytes <= block_.size() - begin; }
    // Reads a pointer. True: it is zero, so there is no such table.
    [[nodiscard]] bool points_nowhere(std::uint8_t encoding) const {
        const std::size_t size = std::min(size_of(encoding), left());
        return std::all_of(block_.begin() + static_cast<std::ptrdiff_t>(at_),
                           block_.begin() + static_cast<std::ptrdiff_t>(at_ + size),
                           [](std::byte byte) { return byte == std::byte{0}; });
    }
    // Takes the next `bytes` as a separate record; this one continues after them.
    Record part(std::uint64_t bytes) {
        if (bytes > left()) ok_ = false;
        Record inner(block_, at_, ok_ ? static_cast<std::size_t>(bytes) : 0);
        at_ = ok_ ? inner.end_ : end_;
        return inner;
    }

private:
    Bytes block_;
    std::size_t at_, end_;
    bool ok_ = true;
};

bool is_known(std::uint8_t encoding) {
    return encoding == (kFromItself | kSigned4) || encoding == (kFromItself | kSigned8);
}

// Whether each mark occurs once, in the order in which compilers write them. libgcc reads no further than 'R', or than a mark that it does
// not know before it: in another order it would take other encodings than this check.
bool are_as_written(std::string_view marks) {
    constexpr std::string_view order = "PLRSB";
    std::size_t from = 0;
    return std::all_of(marks.begin(), marks.end(), [&from, order](char mark) {
        const std::size_t place = order.find(mark, from);
        from = place + 1;
        return place != std::string_view::npos;
    });
}

Result<Common> take_common(Record record) {
    const auto version = record.number<std::uint8_t>();
    if (version != 1 && version != 3) return tl::unexpected<Error>(malformed("of an unknown version"));
    const std::string_view marks = record.text();
    (void)record.variable();  // unit of code positions
    (void)record.variable();  // unit of stack positions; signed, of the same length
    (void)(version == 1 ? record.number<std::uint8_t>() : record.variable());  // the register of the return address
    // Without "R" the addresses of functions are absolute, which an image cannot have.
    if (!record.ok() || !marks.starts_with('z')) return tl::unexpected<Error>(malformed("with absolute addresses"));
    if (!are_as_written(marks.substr(1)))
        return tl::unexpected<Error>(malformed("with unknown marks, or marks in another order than compilers write"));
    Common common;
    Record marked = record.part(record.variable());
    for (const char mark : marks.substr(1)) {
        switch (mark) {
            case 'R': common.code = marked.number<std::uint8_t>(); break;
            case 'L': common.exceptions = marked.number<std::uint8_t>(); break;
            case 'P': {
                const auto encoding = marked.number<std::uint8_t>();
                const bool indirect = (encoding & kIndirect) != 0;
                if (!is_known(encoding & ~kIndirect) || !marked.pointer(encoding, indirect ? 8 : 1))
                    return tl::unexpected<Error>(malformed("with a personality routine outside the code"));
                break;
            }
            default: break;  // 'S': frames of signal handlers; 'B': return addresses are signed by the second key
        }
    }
    if (!record.ok() || !marked.ok() || !is_known(common.code) ||
        (common.exceptions != kOmitted && !is_known(common.exceptions)))
        return tl::unexpected<Error>(malformed("with addresses of an unknown kind"));
    return common;
}

Status take_function(Record record, const Common& common) {
    const std::optional<std::size_t> begin = record.pointer(common.code, 0);
    const std::uint64_t bytes =
        size_of(common.code) == 8 ? record.number<std::uint64_t>() : std::uint64_t{record.number<std::uint32_t>()};
    if (!record.ok() || !begin || !record.reaches(*begin, bytes))
        return tl::unexpected<Error>(malformed("of code elsewhere"));
    Record marked = record.part(record.variable());
    if (!record.ok()) return tl::unexpected<Error>(malformed("with a record that is cut off"));
    if (common.exceptions == kOmitted || marked.left() == 0) return {};
    if (!marked.points_nowhere(common.exceptions) && !marked.pointer(common.exceptions, 1))
        return tl::unexpected<Error>(malformed("with an exception table elsewhere"));
    return {};
}

}  // namespace

Status check_unwind_table(const UnwindTable& table) {
    std::unordered_map<std::size_t, Common> commons;  // by the offsets of their records
    const std::size_t end = table.offset + table.bytes;
    for (std::size_t at = table.offset; end - at >= 4;) {
        std::uint32_t bytes = 0;
        std::memcpy(&bytes, table.block.data() + at, sizeof bytes);
        if (bytes == 0) {
            const Bytes rest = table.block.subspan(at, end - at);
            if (std::all_of(rest.begin(), rest.end(), [](std::byte byte) { return byte == std::byte{0}; })) return {};
            return tl::unexpected<Error>(malformed("with something after its end"));
        }
        const std::size_t begin = at;
        at += sizeof bytes;
        if (bytes < 4 || bytes > end - at) return tl::unexpected<Error>(malformed("with a record longer than itself"));
        Record record(table.block, at, bytes);
        const auto back = record.number<std::uint32_t>();  // distance to the common record; 0: this is one
        if (back == 0) {
            ROVE_TRY(commons[begin], take_common(record));
        } else {
            const auto common = back <= at ? commons.find(at - back) : commons.end();
            if (common == commons.end())
                return tl::unexpected<Error>(malformed("with a function of no common record before it"));
            ROVE_CHECK(take_function(record, common->second));
        }
        at += bytes;
    }
    return tl::unexpected<Error>(malformed("without an end"));
}

}  // namespace rove::wire
