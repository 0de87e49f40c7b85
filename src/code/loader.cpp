#include "code/loader.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/fork.hpp"
#include "bitcode/compiled.hpp"

// libgcc's functions: the table ends with a zero word.
extern "C" void __register_frame(void* begin);    // NOLINT(bugprone-reserved-identifier)
extern "C" void __deregister_frame(void* begin);  // NOLINT(bugprone-reserved-identifier)

namespace rove::code {
namespace {
constexpr std::size_t kMappedBytes = 16 * 1024;  // alignment is a page's at most, as decode_image has checked
}

// Large ones are mapped: the kernel zeroes their pages, and only pages that are used take memory.
DataSegment::DataSegment(std::size_t bytes, std::size_t alignment) : bytes_(bytes), mapped_(bytes >= kMappedBytes) {
    if (mapped_) {
        void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        start_ = static_cast<std::byte*>(memory);
        return;
    }
    alignment_ = std::max<std::size_t>(alignment, 16);
    start_ = static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), std::align_val_t(alignment_)));
    std::memset(start_, 0, bytes_);
}

DataSegment::~DataSegment() {
    if (mapped_)
        munmap(start_, bytes_);
    else
        ::operator delete(start_, std::align_val_t(alignment_));
}

Result<std::unique_ptr<LoadedImage>> LoadedImage::load(CodePool& pool, const wire::Image& image,
                                                       std::shared_ptr<DataSegment> data,
                                                       const std::function<void*(std::size_t)>& import_address) {
    std::unique_ptr<LoadedImage> self(new LoadedImage());
    ROVE_TRY(self->code_, pool.allocate(image.block.size()));
    const bool new_data = !data;
    try {
        if (new_data) data = std::make_shared<DataSegment>(image.data_bytes, image.data_alignment);
    } catch (const std::bad_alloc&) {
        return fail(ErrorCode::overloaded, "this machine has no memory for {} bytes of statics; call it later",
                    image.data_bytes);
    }
    if (data->bytes() != image.data_bytes)
        return fail(ErrorCode::internal, "statics of {} bytes were kept for an image that has {}", data->bytes(),
                    image.data_bytes);
    self->data_ = std::move(data);
    std::byte* block = self->code_.writable();
    std::memcpy(block, image.block.data(), image.block.size());
    if (new_data && !image.data.empty()) std::memcpy(self->data_->start(), image.data.data(), image.data.size());
    for (const wire::Relocation& each : image.relocations) {  // every offset was checked by decode_image
        const bool in_data = each.where == wire::Segment::data;
        if (in_data && !new_data) continue;
        std::uintptr_t value = 0;
        switch (each.kind) {
            case wire::Relocation::Kind::block:
                value = reinterpret_cast<std::uintptr_t>(self->code_.executable());
                break;
            case wire::Relocation::Kind::data: value = reinterpret_cast<std::uintptr_t>(self->data_->start()); break;
            case wire::Relocation::Kind::import:
                value = reinterpret_cast<std::uintptr_t>(import_address(each.import));
                if (value == 0 && !in_data) self->gaps_.push_back({each.import, each.offset});
                break;
        }
        value += static_cast<std::uintptr_t>(each.addend);
        std::memcpy((in_data ? self->data_->start() : block) + each.offset, &value, sizeof value);
    }
    std::ranges::sort(self->gaps_, {}, &Gap::import);
    self->gaps_.shrink_to_fit();
    CodePool::make_ready(self->code_);
    if (image.eh_frame_bytes > 4) {  // a bare terminator describes nothing
        self->eh_frame_ = self->code_.executable() + image.eh_frame_offset;
        const NoForkMeanwhile whole;  // the unwinder has a lock
        __register_frame(self->eh_frame_);
    }
    self->init_offset_ = image.init_array_offset;
    self->init_count_ = image.init_array_count;
    self->fini_offset_ = image.fini_array_offset;
    self->fini_count_ = image.fini_array_count;
    return self;
}

std::unique_ptr<LoadedImage> LoadedImage::rehearse(CodePool& pool) {
    constexpr std::size_t kCode = 16, kCommon = 24,
                          kFunction = 20;  // bytes of code, and of the two entries that describe it
    wire::Image image;
    image.block.resize(kCode + kCommon + kFunction + 4);  // a zero word ends the table
    std::byte* table = image.block.data() + kCode;
    // The part that functions share: version 1, addresses relative to themselves in 4 bytes, the frame's address by register 7 (DWARF's
    // .eh_frame; it is entered into a table, and never used to unwind).
    constexpr std::uint8_t kCommonBytes[kCommon] = {kCommon - 4, 0, 0,  0, 0,  0,  0, 0, 1, 'z', 'R', 0,
                                                    1,           8, 16, 1, 27, 12, 7, 8, 0, 0,   0,   0};
    std::memcpy(table, kCommonBytes, kCommon);
    const std::int32_t function[kFunction / 4] = {kFunction - 4, kCommon + 4, -std::int32_t{kCode + kCommon + 8}, kCode,
                                                  0};
    std::memcpy(table + kCommon, function, sizeof function);
    image.eh_frame_offset = kCode;
    image.eh_frame_bytes = static_cast<std::uint32_t>(image.block.size() - kCode);
    const Result<wire::Image> decoded = wire::decode_image(wire::encode(image), 0);
    if (!decoded) return nullptr;
    Result<std::unique_ptr<LoadedImage>> loaded = load(pool, *decoded, nullptr, {});
    return loaded ? std::move(*loaded) : nullptr;
}

LoadedImage::~LoadedImage() {
    if (eh_frame_ == nullptr) return;
    const NoForkMeanwhile whole;
    __deregister_frame(eh_frame_);
}

void* LoadedImage::address(wire::Segment segment, std::size_t offset) const {
    return (segment == wire::Segment::block ? code_.executable() : data_->start()) + offset;
}

bool LoadedImage::can_put(std::size_t import) const noexcept {
    return std::ranges::equal_range(gaps_, import, {}, &Gap::import).size() <= bitcode::kPlacesMax;
}

void LoadedImage::put(std::size_t import, void* address) noexcept {
    for (const Gap& gap : std::ranges::equal_range(gaps_, import, {}, &Gap::import)) {
        std::byte* place = code_.writable() + gap.offset;
        std::uintptr_t value = 0;
        std::memcpy(&value, place, sizeof value);
        value += reinterpret_cast<std::uintptr_t>(address);
        std::memcpy(place, &value, sizeof value);
    }
}

void LoadedImage::construct() const {
    for (std::size_t i = 0; i < init_count_; ++i) {
        void (*constructor)(int, char**, char**) = nullptr;
        std::memcpy(static_cast<void*>(&constructor), code_.executable() + init_offset_ + 8 * i, sizeof constructor);
        constructor(0, nullptr, nullptr);
    }
}

void LoadedImage::destruct() const {
    for (std::size_t i = fini_count_; i > 0; --i) {
        void (*destructor)() = nullptr;
        std::memcpy(static_cast<void*>(&destructor), code_.executable() + fini_offset_ + 8 * (i - 1),
                    sizeof destructor);
        destructor();
    }
}

}  // namespace rove::code
