// The fixtures of tests of a code cache's parts: packages, and the parts that keep them. No cache knows them, and nothing runs their code.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "code/admission.hpp"
#include "code/cache_lock.hpp"
#include "code/new_code.hpp"
#include "code/package_code.hpp"
#include "package/pack.hpp"

namespace rove::code {

// The contents of a package.
struct Contents {
    std::string name;
    std::vector<std::string> entries = {"run"};
    std::vector<std::string> exports = {}, imports = {}, dependencies = {};
    std::vector<std::vector<std::string>> needs = {};  // as for set_needs(); none: every entry needs all imports
    bool interface = false, pinned = false;
    std::optional<wire::Image> image = {};
    ByteBuffer bitcode = {};  // empty: none
};

// Bytes that nothing compresses.
inline ByteBuffer any_bytes(std::size_t count) {
    ByteBuffer bytes(count);
    std::mt19937 any(count);
    std::ranges::generate(bytes, [&any] { return static_cast<std::byte>(any()); });
    return bytes;
}

// An image of entries with nothing in them, of kEntryBytes each, and after these a place for the address of each import.
inline constexpr std::uint32_t kEntryBytes = 16;
inline wire::Image image_of(std::uint32_t entries, std::uint32_t imports = 0) {
    wire::Image image;
    image.block.resize(kEntryBytes * entries + 8UL * imports);
    for (std::uint32_t i = 0; i < entries; ++i) image.symbols.push_back({.index = i, .offset = kEntryBytes * i});
    for (std::uint32_t i = 0; i < imports; ++i)
        image.relocations.push_back(
            {.kind = wire::Relocation::Kind::import, .offset = kEntryBytes * entries + 8 * i, .import = i});
    return image;
}
inline void* address_at(const LoadedImage& image, std::size_t offset) {
    void* address = nullptr;
    std::memcpy(static_cast<void*>(&address), image.address(wire::Segment::block, offset), sizeof address);
    return address;
}

// Packages that are not loaded.
class PartsTest : public testing::Test {
protected:
    [[nodiscard]] static std::shared_ptr<PackageStore> store(const Contents& contents) {
        wire::Manifest manifest;
        manifest.name = contents.name;
        manifest.abi = ROVE_ABI_VERSION;
        manifest.interface = contents.interface;
        manifest.pinned = contents.pinned;
        manifest.entries = contents.entries;
        manifest.exports = contents.exports;
        manifest.imports = contents.imports;
        manifest.dependencies = contents.dependencies;
        EXPECT_TRUE(set_needs(manifest, contents.needs));
        std::vector<ByteBuffer> stored;
        const auto add = [&](Forms form, ByteBuffer raw) {
            ByteBuffer& bytes = stored.emplace_back();
            manifest.slices.push_back(make_slice(std::string(host_triple()), form, std::move(raw), bytes, true));
        };
        if (contents.image) add(Forms::image, wire::encode(*contents.image));
        if (!contents.bitcode.empty()) add(Forms::bitcode, contents.bitcode);
        auto parsed = PackageStore::parse(PackageStore::serialize(manifest, stored));
        EXPECT_TRUE(parsed) << parsed.error().message();
        return *parsed;
    }
    [[nodiscard]] std::unique_ptr<PackageCode> package(const std::string& name, std::size_t bytes,
                                                       const std::string& version = {}) {
        auto package = std::make_unique<PackageCode>(
            owner_, store({.name = name, .entries = {"run", "stop" + version}, .bitcode = any_bytes(bytes)}));
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
    CacheLock lock_{options_.node};
    MutexOf<CodeCache>& mutex_ = lock_.mutex();
    std::uint64_t packages_ = 0;
};

// The parts that know packages, count them and evict their code.
class KeepingTest : public PartsTest {
protected:
    using PartsTest::store;
    [[nodiscard]] std::shared_ptr<PackageStore> store(const std::string& name, std::size_t bytes = 100) {
        return package(name, bytes)->store;
    }
    // Adds it as a package that node 3 has sent.
    [[nodiscard]] Result<std::shared_ptr<PackageStore>> add(const std::shared_ptr<PackageStore>& store,
                                                            bool resident = false) {
        const LockOf lock(mutex_);
        return admission_.add(store, resident, 3);
    }
    [[nodiscard]] PackageCode* known(const PackageStore& store) {
        const LockOf lock(mutex_);
        return known_.package(store.digest());
    }
    [[nodiscard]] PackageCode& know(const Contents& contents, bool resident = false) {
        const auto added = add(store(contents), resident);
        EXPECT_TRUE(added) << added.error().message();
        return *known(**added);
    }
    // The image of a package, which lacks all imports, before it is the package's.
    [[nodiscard]] NewCode loaded(const PackageCode& package, const wire::Image& image) {
        NewCode code;
        auto made = LoadedImage::load(pool_, image, package.data, [](std::size_t) { return nullptr; });
        EXPECT_TRUE(made) << made.error().message();
        code.image = std::move(*made);
        code.entries.resize(package.functions.size());
        for (std::size_t i = 0; i < package.functions.size(); ++i)
            code.name_entry(package, i, code.image->address(wire::Segment::block, kEntryBytes * i));
        return code;
    }
    void call(const PackageStore& store) { Uses::note_call(*known(store), uses_.advance()); }
    void trim() {
        const LockOf lock(mutex_);
        evictor_.trim();
    }

    CodePool pool_;  // outlives the packages below
    Known known_;
    Uses uses_;
    Candidates candidates_;
    Budgets budgets_{options_, candidates_, uses_};
    CompileQueue compile_queue_;
    Evictor evictor_{{.lock = lock_,
                      .known = known_,
                      .budgets = budgets_,
                      .candidates = candidates_,
                      .uses = uses_,
                      .compile_queue = compile_queue_}};
    Admission admission_{{.cache = owner_,
                          .options = options_,
                          .known = known_,
                          .budgets = budgets_,
                          .candidates = candidates_,
                          .uses = uses_,
                          .evictor = evictor_}};
    NewCodes new_codes_{known_, budgets_, uses_};
};

}  // namespace rove::code
