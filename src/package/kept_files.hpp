// Files that programs make for themselves, and can make again.
#pragma once

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace rove {

// One kind of them, each by a key. What cannot be read or written is not kept; those that nobody has found for the longest time are removed when
// there are too many. Several processes of one user may use a folder at once.
//
// Code is made of these files, so nobody else may put one there: the folder must be the user's own, and writable by nobody else, and each
// file a regular one of his. In a folder that is not so nothing is found or kept.
class KeptFiles {
public:
    // extension: of this kind, with its point. most: files, of which none has more than bytes_max.
    KeptFiles(std::filesystem::path folder, std::string extension, std::size_t most, std::size_t bytes_max);
    // $ROVE_CACHE, else rove/ under $XDG_CACHE_HOME or ~/.cache. Empty: there is none, and nothing is kept. So it is where the kernel gave this
    // program more rights than who started it has (AT_SECURE).
    [[nodiscard]] static std::filesystem::path default_folder();
    // Whether the folder may be used, or made. refused: it is another user's, or others may write in it; says so, and the remedy.
    [[nodiscard]] static Status check(const std::filesystem::path& folder);

    [[nodiscard]] ByteBuffer find(const Digest& key) const;  // empty: not found
    // failed: it cannot be written there; names the folder. What is too large, or has no folder that may be used, is not kept without a word.
    Status keep(const Digest& key, Bytes content) const;

private:
    [[nodiscard]] std::filesystem::path file_of(const Digest& key) const { return folder_ / (key.hex() + extension_); }
    void remove_oldest() const;
    [[nodiscard]] bool is_time_to_count() const { return written_++ % std::max<std::size_t>(1, most_ / 32) == 0; }
    const std::filesystem::path folder_;  // empty: nothing is kept
    const std::string extension_;
    const std::size_t most_, bytes_max_;
    mutable std::atomic<std::size_t> written_{0};
};

}  // namespace rove
