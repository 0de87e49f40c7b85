// One source for one target, by clang, to bitcode that is not optimised yet.
//
// Threads: one compile() at a time, as run() (process.hpp).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace rove::toolchain {

struct CompileOptions {
    std::filesystem::path source;
    std::string triple;
    std::vector<std::string> flags;
    std::filesystem::path folder;  // for the output
};

[[nodiscard]] bool is_source(const std::filesystem::path& path);
// failed: the compiler's own message; unsupported: no clang, or the target's headers are missing (names the Debian package).
[[nodiscard]] Result<ByteBuffer> compile(const CompileOptions& options);

}  // namespace rove::toolchain
