// What tests of a code cache's parts share: packages that no cache knows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "code/package_code.hpp"
#include "package/pack.hpp"

namespace rove::code {

// Packages that are not loaded, with a slice of some bytes.
class PartsTest : public testing::Test {
protected:
    std::unique_ptr<PackageCode> package(const std::string& name, std::size_t bytes, const std::string& version = {}) {
        wire::Manifest manifest;
        manifest.name = name;
        manifest.abi = ROVE_ABI_VERSION;
        manifest.entries = {"run", "stop" + version};
        std::vector<ByteBuffer> stored(1);
        ByteBuffer code(bytes);
        std::mt19937 any(bytes);  // nothing compresses it
        std::ranges::generate(code, [&any] { return static_cast<std::byte>(any()); });
        manifest.slices.push_back(make_slice("x86_64-linux-gnu", Forms::bitcode, std::move(code), stored[0], true));
        auto store = PackageStore::parse(PackageStore::serialize(manifest, stored));
        EXPECT_TRUE(store) << store.error().message();
        auto package = std::make_unique<PackageCode>(owner_, *store);
        package->number = packages_++;
        return package;
    }

    CodeOptions options_ = [] {
        CodeOptions options;
        options.node = "node 7";
        options.code_bytes_max = 16UL << 20;
        return options;
    }();
    CodeCache owner_{options_};
    MutexOf<CodeCache> mutex_;
    std::uint64_t packages_ = 0;
};

}  // namespace rove::code
