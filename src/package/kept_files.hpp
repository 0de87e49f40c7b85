// Files that programs make for themselves, and can make again.
#pragma once

#include <filesystem>
#include <string>

#include "base/bytes.hpp"
#include "base/ids.hpp"

namespace rove {

// One kind of them, each by a key. What cannot be read or written is not kept; the oldest are removed when there are too many. Several processes
// may use a folder at once.
class KeptFiles {
public:
    // extension: of this kind, with its point.
    KeptFiles(std::filesystem::path folder, std::string extension, std::size_t most)
        : folder_(std::move(folder)), extension_(std::move(extension)), most_(most) {}
    // $ROVE_CACHE, else rove/ under $XDG_CACHE_HOME or ~/.cache. Empty: there is none, and nothing is kept.
    [[nodiscard]] static std::filesystem::path default_folder();

    [[nodiscard]] ByteBuffer find(const Digest& key) const;  // empty: not found
    void keep(const Digest& key, Bytes content) const;

private:
    [[nodiscard]] std::filesystem::path file_of(const Digest& key) const { return folder_ / (key.hex() + extension_); }
    const std::filesystem::path folder_;
    const std::string extension_;
    const std::size_t most_;
};

}  // namespace rove
