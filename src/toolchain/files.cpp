#include "toolchain/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "base/descriptor.hpp"
#include "base/made_once.hpp"
#include "base/write_all.hpp"

namespace rove::toolchain {

namespace {

std::filesystem::path temporary_files() {
    std::error_code error;
    std::filesystem::path base = std::filesystem::temp_directory_path(error);
    return error ? "/tmp" : base;
}

// The names of this process's folders begin with this, and those of no other process.
std::string own_prefix() {
    static constinit MadeOnce<const std::string> prefix;
    return prefix.get([] { return new const std::string(fmt::format("rove-build-{:08x}-", std::random_device()())); });
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::make() {
    const std::filesystem::path base = temporary_files();
    std::string name = (base / (own_prefix() + "XXXXXX")).string();
    if (mkdtemp(name.data()) == nullptr)
        return fail(ErrorCode::failed, "no temporary folder in {} ({}); set TMPDIR", base.string(), strerror(errno));
    TemporaryFolder folder;
    folder.path_ = name;
    return folder;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

void TemporaryFolder::remove_all() {
    std::error_code ignored;
    for (const auto& each : std::filesystem::directory_iterator(temporary_files(), ignored))
        if (each.path().filename().string().starts_with(own_prefix()))
            std::filesystem::remove_all(each.path(), ignored);
}

std::string no_room_for_temporary_files() {
    return fmt::format("there is no room in {}; make some, or set TMPDIR", temporary_files().string());
}

bool says_no_room(std::string_view words) {
    return words.find(strerror(ENOSPC)) != std::string_view::npos;
}

Result<ByteBuffer> read_file(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    if (!stream) return fail(ErrorCode::invalid, "cannot read {}", path.string());
    const Bytes bytes = as_bytes(text);
    return ByteBuffer(bytes.begin(), bytes.end());
}

namespace {

std::string why_not_written(const std::filesystem::path& path, int why) {
    const bool is_temporary = path.native().starts_with((temporary_files() / own_prefix()).native());
    return why == ENOSPC && is_temporary ? no_room_for_temporary_files() : strerror(why);
}

// The number of names tried for a temporary file; processes that had this number may have left all of them.
constexpr unsigned kNamesTried = 100;

// The regular file, existing or not, to which a path leads: a rename onto anything else would replace that.
Result<std::filesystem::path> file_to_write(const std::filesystem::path& path) {
    std::error_code error;
    const bool link = std::filesystem::is_symlink(std::filesystem::symlink_status(path, error));
    const std::filesystem::file_status there = std::filesystem::status(path, error);
    if (!std::filesystem::exists(there)) {
        if (link)
            return fail(ErrorCode::invalid, "cannot write {}: it is a link to a file that is not there", path.string());
        return path;
    }
    if (!std::filesystem::is_regular_file(there))
        return fail(ErrorCode::invalid, "cannot write {}: it is there and is no regular file", path.string());
    if (!link) return path;
    std::filesystem::path behind = std::filesystem::canonical(path, error);
    if (error) return fail(ErrorCode::invalid, "cannot write {} ({})", path.string(), error.message());
    return behind;
}

}  // namespace

Status write_file(const std::filesystem::path& named, Bytes bytes) {
    ROVE_TRY(const std::filesystem::path path, file_to_write(named));
    const auto cannot = [&path](int why) {
        return fail(ErrorCode::invalid, "cannot write {} ({})", path.string(), why_not_written(path, why));
    };
    // A new file, because others may be able to write to its folder: an existing file of that name may be a link of theirs.
    std::string temporary;
    Descriptor file;
    for (unsigned i = 0; !file.is_open() && i < kNamesTried; ++i) {
        temporary = fmt::format("{}.{}.{}.part", path.string(), getpid(), i);
        file = Descriptor(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        if (!file.is_open() && errno != EEXIST) break;
    }
    if (!file.is_open()) return cannot(errno);
    if (write_all(file.number(), bytes) && rename(temporary.c_str(), path.c_str()) == 0) return {};
    const int why = errno;
    (void)unlink(temporary.c_str());
    return cannot(why);
}

}  // namespace rove::toolchain
