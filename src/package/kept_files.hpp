// Files that programs make for themselves, and can make again.
//
// Threads: any. Several processes of one user may use a folder at once.
//
// Invariant: a file that is found is complete, because it is written under another name and renamed.
#pragma once

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace rove {

// The files of one kind, each found by its key. A file that cannot be read or written is not kept. When there are too many, those that were
// not found for the longest time are removed.
//
// Code is made of these files, so no other user may put one there: the folder must belong to the user and be writable by no one else, and
// each file must be a regular file of the same user. In any other folder nothing is found or kept.
class KeptFiles {
public:
    // extension: of this kind, with its point. At most `most` files, of at most bytes_max each.
    KeptFiles(std::filesystem::path folder, std::string extension, std::size_t most, std::size_t bytes_max);
    // $ROVE_CACHE, else rove/ under $XDG_CACHE_HOME or ~/.cache. Empty: there is none, and nothing is kept; always where the kernel gave this
    // program more rights than the user who started it has (AT_SECURE).
    [[nodiscard]] static std::filesystem::path default_folder();
    // Whether the folder may be used, or made. refused: it is another user's, or others may write in it; the message gives the remedy.
    [[nodiscard]] static Status check(const std::filesystem::path& folder);

    [[nodiscard]] ByteBuffer find(const Digest& key) const;  // empty: not found
    // failed: it cannot be written there; the message names the folder. No error where nothing is kept because the content is too large or no
    // folder may be used.
    Status keep(const Digest& key, Bytes content) const;

private:
    [[nodiscard]] std::filesystem::path file_of(const Digest& key) const { return folder_ / (key.hex() + extension_); }
    void remove_oldest() const;
    // Called after each write. True: it is time to count the files of the folder, which takes longer than a write.
    [[nodiscard]] bool note_write() const { return written_++ % std::max<std::size_t>(1, most_ / 32) == 0; }
    const std::filesystem::path folder_;  // empty: nothing is kept
    const std::string extension_;
    const std::size_t most_, bytes_max_;
    mutable std::atomic<std::size_t> written_{0};
};

}  // namespace rove
