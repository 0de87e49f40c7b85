// Loading an image: copy, relocate, register unwind tables, make ready, construct.
//
// Threads: one at a time for each image; its loader is the thread that has the package (ImageLoads). Different images: any.
//
// Invariants: an image's unwind table is registered for as long as its code exists. A place for an import holds its address, or, while the
// import is missing, only the addend (Gap). A DataSegment never moves.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "code/pool.hpp"
#include "wire/image.hpp"

namespace rove::code {

// A package's writable statics. Made once; outlives the code that uses it.
class DataSegment {
public:
    DataSegment(std::size_t bytes, std::size_t alignment);
    ~DataSegment();
    DataSegment(const DataSegment&) = delete;
    [[nodiscard]] std::byte* start() const { return start_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
    std::byte* start_ = nullptr;
    std::size_t bytes_;
    bool mapped_;
    std::size_t alignment_ = 0;
};

class LoadedImage {
public:
    // `import_address` returns the address of an import by its index; null: the name does not exist, and may be added later (put). Data that
    // is given is not changed; if it is null it is made and initialised.
    [[nodiscard]] static Result<std::unique_ptr<LoadedImage>> load(
        CodePool& pool, const wire::Image& image, std::shared_ptr<DataSegment> data,
        const std::function<void*(std::size_t)>& import_address);
    // Loads an image that does nothing, just large enough to take every step of loading, because the page faults of a process's first image take
    // five times as long as the image itself. Null: it could not be loaded.
    [[nodiscard]] static std::unique_ptr<LoadedImage> rehearse(CodePool& pool);
    ~LoadedImage();
    LoadedImage(const LoadedImage&) = delete;

    [[nodiscard]] void* address(wire::Segment segment, std::size_t offset) const;
    [[nodiscard]] const std::shared_ptr<DataSegment>& data() const { return data_; }
    [[nodiscard]] std::size_t code_bytes() const { return code_.bytes() + gaps_.size() * sizeof(Gap); }
    // Whether put() may be called: false if the code has the import in more than bitcode::kPlacesMax places.
    [[nodiscard]] bool can_put(std::size_t import) const noexcept;
    // Writes the address of an import that was null, once. Precondition: no thread runs code that needs it.
    void put(std::size_t import, void* address) noexcept;
    void construct() const;  // runs the constructors
    void destruct() const;   // runs the functions of the fini array, last first

private:
    // A place in the block where an import's address belongs. Until put() the place holds the addend. The data has none: its initial values are
    // made once, so the package as a whole needs all names that they refer to.
    struct Gap {
        std::uint32_t import, offset;
    };
    LoadedImage() = default;
    CodePool::Piece code_;
    std::vector<Gap> gaps_;  // by import
    std::shared_ptr<DataSegment> data_;
    void* eh_frame_ = nullptr;
    std::uint32_t init_offset_ = 0, init_count_ = 0, fini_offset_ = 0, fini_count_ = 0;
};

}  // namespace rove::code
