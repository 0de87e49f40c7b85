// Files of a build: a temporary folder, and outputs that appear whole or not at all.
//
// Threads: any; a TemporaryFolder is used by one at a time.
//
// Invariant: a TemporaryFolder is removed with its owner, or by remove_all(), which finds the folders of this process by their names.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace rove::toolchain {

class TemporaryFolder {
public:
    [[nodiscard]] static Result<TemporaryFolder> make();
    TemporaryFolder() = default;
    TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
        std::swap(path_, other.path_);
        return *this;
    }
    ~TemporaryFolder();
    static void remove_all();  // all folders of this process, which is about to end
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

// The message "there is no room in /tmp; make some, or set TMPDIR", with the folder for temporary files.
[[nodiscard]] std::string no_room_for_temporary_files();
// Whether a compiler or linker that has printed this failed because there was no room.
[[nodiscard]] bool says_no_room(std::string_view words);

[[nodiscard]] Result<ByteBuffer> read_file(const std::filesystem::path& path);
// Writes a temporary file beside it and renames that. A symbolic link to a regular file is followed. invalid: it cannot be written, or the path
// leads to something that exists and is no regular file.
[[nodiscard]] Status write_file(const std::filesystem::path& path, Bytes bytes);

}  // namespace rove::toolchain
