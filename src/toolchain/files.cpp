#include "toolchain/files.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace rove::toolchain {

Result<TemporaryFolder> TemporaryFolder::make() {
    std::error_code error;
    std::filesystem::path base = std::filesystem::temp_directory_path(error);
    if (error) base = "/tmp";
    std::string name = (base / "rove-build-XXXXXX").string();
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

Result<ByteBuffer> read_file(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    if (!stream) return fail(ErrorCode::invalid, "cannot read {}", path.string());
    const Bytes bytes = as_bytes(text);
    return ByteBuffer(bytes.begin(), bytes.end());
}

Status write_file(const std::filesystem::path& path, Bytes bytes) {
    const std::filesystem::path temporary = path.string() + "." + std::to_string(getpid()) + ".part";
    std::error_code error;
    {
        std::ofstream stream(temporary, std::ios::binary);
        stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        stream.flush();
        if (!stream) {
            std::filesystem::remove(temporary, error);
            return fail(ErrorCode::invalid, "cannot write {}", path.string());
        }
    }
    std::filesystem::rename(temporary, path, error);
    if (!error) return {};
    const std::string why = error.message();
    std::filesystem::remove(temporary, error);
    return fail(ErrorCode::invalid, "cannot write {} ({})", path.string(), why);
}

}  // namespace rove::toolchain
