// Files of a build: a temporary folder, and outputs that appear whole or not at all.
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
    static void remove_all();  // those of the process, which is about to end
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

// "there is no room in /tmp; make some, or set TMPDIR", of where temporary folders are.
[[nodiscard]] std::string no_room_for_temporary_files();
// Whether that is why a compiler or linker failed that has written these words.
[[nodiscard]] bool says_no_room(std::string_view words);

[[nodiscard]] Result<ByteBuffer> read_file(const std::filesystem::path& path);
// By a temporary beside it and a rename. Through a symbolic link to a regular file; what is neither that nor absent is left alone, and
// invalid.
[[nodiscard]] Status write_file(const std::filesystem::path& path, Bytes bytes);

}  // namespace rove::toolchain
