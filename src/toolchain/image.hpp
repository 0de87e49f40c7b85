// Makes an image of an object file: links it into one block with the GOT first, and reads the remaining relocations.
//
// Threads: one link_image() at a time, as Compiler::link().
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bitcode/compiler.hpp"
#include "wire/image.hpp"

namespace rove::toolchain {

struct ImageRequest {
    ByteBuffer object;
    std::filesystem::path folder;  // for intermediate files
    // The names that the image refers to by numbers.
    std::vector<std::string> entries, exports, imports;
    std::vector<std::filesystem::path> others{};  // object files to be linked with the first
};

// unsupported: no image can be made of this object; the message says why. Other errors end the build.
[[nodiscard]] Result<wire::Image> link_image(bitcode::Compiler& compiler, const ImageRequest& request);

}  // namespace rove::toolchain
