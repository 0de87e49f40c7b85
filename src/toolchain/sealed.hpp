// Files with facts about a program, whose digest shows that they are unchanged. Pure functions.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "package/digest.hpp"

namespace rove::toolchain {

// made_by: code::made_by.
[[nodiscard]] inline Digest key_of_program(const std::filesystem::path& program, std::string_view made_by) {
    std::error_code unknown;
    return digest_of({made_by, std::filesystem::absolute(program, unknown).string()});
}

// A digest of the content, and the content.
[[nodiscard]] inline ByteBuffer seal(Bytes content) {
    const Digest digest = digest_of({as_text(content)});
    Writer file;
    file.bytes(std::as_bytes(std::span(digest.bytes)));
    file.bytes(content);
    return file.take();
}

// The content; empty: there is none, or it was truncated or changed.
[[nodiscard]] inline Bytes unseal(Bytes file) {
    Reader all(file);
    const auto digest = all.id<Digest>();
    return all.ok() && digest == digest_of({as_text(all.rest())}) ? all.rest() : Bytes();
}

}  // namespace rove::toolchain
