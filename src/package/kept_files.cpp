#include "package/kept_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

namespace rove {

std::filesystem::path KeptFiles::default_folder() {
    const auto from = [](const char* name) {
        const char* value = std::getenv(name);
        return std::filesystem::path(value != nullptr ? value : "");
    };
    if (auto own = from("ROVE_CACHE"); !own.empty()) return own;
    if (const auto cache = from("XDG_CACHE_HOME"); !cache.empty()) return cache / "rove";
    if (const auto home = from("HOME"); !home.empty()) return home / ".cache" / "rove";
    return {};
}

ByteBuffer KeptFiles::find(const Digest& key) const {
    if (folder_.empty()) return {};
    std::ifstream file(file_of(key), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const Bytes bytes = as_bytes(text);
    return {bytes.begin(), bytes.end()};
}

void KeptFiles::keep(const Digest& key, Bytes content) const {
    if (folder_.empty()) return;
    std::error_code failed;
    std::filesystem::create_directories(folder_, failed);
    // Written under a temporary name and renamed, because another process may read it.
    const std::filesystem::path temporary = folder_ / (key.hex() + "." + std::to_string(getpid()));
    {
        std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
        if (!file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()))) {
            file.close();
            std::filesystem::remove(temporary, failed);
            return;
        }
    }
    std::filesystem::rename(temporary, file_of(key), failed);
    if (failed) std::filesystem::remove(temporary, failed);
    std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> all;
    for (const auto& each : std::filesystem::directory_iterator(folder_, failed))
        if (each.path().extension() == extension_) all.emplace_back(each.last_write_time(failed), each.path());
    if (all.size() <= most_) return;
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size() / 4; ++i) std::filesystem::remove(all[i].second, failed);
}

}  // namespace rove
