// Packages whose code nobody runs.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "package/pack.hpp"
#include "package/package.hpp"

namespace rove::test {

// With these entries, and a slice of each form for x86-64.
[[nodiscard]] inline std::shared_ptr<PackageStore> some_package(
    std::vector<std::string> entries, const std::vector<std::pair<Forms, std::size_t>>& slices) {
    wire::Manifest manifest;
    manifest.name = "some";
    manifest.abi = 1;
    manifest.entries = std::move(entries);
    std::vector<ByteBuffer> stored;
    for (const auto& [form, bytes] : slices) {
        ByteBuffer raw(bytes);
        for (std::size_t i = 0; i < bytes; ++i) raw[i] = static_cast<std::byte>(i * 2654435761U >> 24U);
        manifest.slices.push_back(make_slice("x86_64-linux-gnu", form, std::move(raw), stored.emplace_back(), true));
    }
    return value_or_throw(PackageStore::parse(PackageStore::serialize(manifest, stored)));
}

}  // namespace rove::test
