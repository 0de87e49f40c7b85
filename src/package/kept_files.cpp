#include "package/kept_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/write_all.hpp"

namespace rove {
namespace {

// Fills the buffer. False: the file ends before, or cannot be read.
bool read_all(int file, ByteBuffer& into) {
    for (std::size_t at = 0; at < into.size();) {
        const ssize_t got = read(file, into.data() + at, into.size() - at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += static_cast<std::size_t>(got);
    }
    return true;
}

// A file that takes longer to write was left by a process that has ended.
constexpr auto kWritingMax = std::chrono::hours(1);
constexpr std::string_view kTemporary = ".XXXXXX";  // after a key
bool is_temporary(const std::filesystem::path& path) {
    return path.extension().string().size() == kTemporary.size() &&
           path.stem().string().size() == Digest().hex().size();
}

}  // namespace

KeptFiles::KeptFiles(std::filesystem::path folder, std::string extension, std::size_t most, std::size_t bytes_max)
    : folder_(!folder.empty() && check(folder) ? std::move(folder) : std::filesystem::path()),
      extension_(std::move(extension)),
      most_(most),
      bytes_max_(bytes_max) {}

std::filesystem::path KeptFiles::default_folder() {
    const auto from = [](const char* name) {
        const char* value = secure_getenv(name);
        return std::filesystem::path(value != nullptr ? value : "");
    };
    if (const auto own = from("ROVE_CACHE"); !own.empty()) return own.has_filename() ? own : own.parent_path();
    if (const auto cache = from("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "rove";
    if (const auto home = from("HOME"); home.is_absolute()) return home / ".cache" / "rove";
    return {};
}

Status KeptFiles::check(const std::filesystem::path& folder) {
    struct stat facts{};
    if (stat(folder.c_str(), &facts) != 0) return {};  // it is made when something is kept
    const bool is_own_folder = S_ISDIR(facts.st_mode) && facts.st_uid == geteuid();
    if (is_own_folder && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
    return fail(ErrorCode::refused, "nothing is kept in {}, because code is made of what is there: {}", folder.string(),
                is_own_folder            ? "others may write in it; run chmod go-w on it"
                : S_ISDIR(facts.st_mode) ? "it is another user's; give a folder of your own as ROVE_CACHE"
                                         : "it is no folder; remove it, or give another as ROVE_CACHE");
}

ByteBuffer KeptFiles::find(const Digest& key) const {
    if (folder_.empty()) return {};
    // The name may belong to something else by now: this neither waits for a pipe nor reads a device.
    const Descriptor file(open(file_of(key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat facts{};
    if (!file.is_open() || fstat(file.number(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != geteuid() ||
        static_cast<std::uint64_t>(facts.st_size) > bytes_max_)
        return {};
    ByteBuffer content(static_cast<std::size_t>(facts.st_size));
    if (!read_all(file.number(), content)) return {};
    // For remove_oldest(). Where it may not be written nothing is removed either.
    (void)futimens(file.number(), nullptr);
    return content;
}

Status KeptFiles::keep(const Digest& key, Bytes content) const {
    if (folder_.empty() || content.size() > bytes_max_) return {};
    const auto cannot = [this] {
        return fail(ErrorCode::failed,
                    "nothing can be written in {} ({}); make room there, or give another folder as ROVE_CACHE",
                    folder_.string(), std::strerror(errno));
    };
    std::error_code failed;
    std::filesystem::create_directories(folder_.parent_path(), failed);
    if (mkdir(folder_.c_str(), S_IRWXU) != 0 && errno != EEXIST) return cannot();
    if (!check(folder_)) return {};
    // Written under a temporary name and renamed, because another process may read it.
    std::string temporary = (folder_ / (key.hex() + std::string(kTemporary))).string();
    const Descriptor file(mkostemp(temporary.data(), O_CLOEXEC));
    if (!file.is_open()) return cannot();
    Status kept;
    if (!write_all(file.number(), content) || rename(temporary.c_str(), file_of(key).c_str()) != 0) {
        kept = cannot();
        (void)unlink(temporary.c_str());
    }
    if (note_write()) remove_oldest();
    return kept;
}

void KeptFiles::remove_oldest() const {
    std::error_code failed;
    const auto now = std::filesystem::file_time_type::clock::now();
    std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> all;
    for (std::filesystem::directory_iterator at(folder_, failed), end; !failed && at != end; at.increment(failed)) {
        const std::filesystem::path& path = at->path();
        std::error_code gone;  // another process has removed it
        const auto written = std::filesystem::last_write_time(path, gone);
        if (gone) continue;
        if (path.extension() == extension_)
            all.emplace_back(written, path);
        else if (is_temporary(path) && now - written > kWritingMax)
            std::filesystem::remove(path, gone);
    }
    if (all.size() <= most_) return;
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < (all.size() + 3) / 4; ++i) std::filesystem::remove(all[i].second, failed);
}

}  // namespace rove
