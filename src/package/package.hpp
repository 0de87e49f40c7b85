// PackageStore implements the public rove::Package: an immutable, content-addressed unit of mobile code. A package
// from a file is complete; one that a node received holds the slices that were sent, each verified against the
// manifest separately.
//
// Threads: any. All but the slices is constant after construction; add_slice and drop_slices lock.
//
// Invariants: `manifest_`, `digest_` and `function_ids_` are those of `manifest_bytes_`. A slice that is here has the size and the hash that the
// manifest gives for it.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "wire/manifest.hpp"

namespace rove {

class PackageStore {
public:
    // A package from the bytes of a file: manifest and all slices. invalid: truncated or altered; unsupported: built for another abi.
    [[nodiscard]] static Result<std::shared_ptr<PackageStore>> parse(Bytes file);
    [[nodiscard]] static Result<std::shared_ptr<PackageStore>> open(const std::filesystem::path& path);
    // A package without slices, from a manifest that arrived. Errors: as parse().
    [[nodiscard]] static Result<std::shared_ptr<PackageStore>> from_manifest(Bytes manifest);

    // The file's bytes: "ROVEPKG1", manifest size, manifest, every slice in the manifest's order.
    [[nodiscard]] static ByteBuffer serialize(const wire::Manifest& manifest,
                                              const std::vector<ByteBuffer>& stored_slices);

    [[nodiscard]] const wire::Manifest& manifest() const { return manifest_; }
    [[nodiscard]] Bytes manifest_bytes() const { return manifest_bytes_; }
    [[nodiscard]] const Digest& digest() const { return digest_; }
    [[nodiscard]] const std::vector<FunctionId>& function_ids() const { return function_ids_; }  // one per entry
    // The index of an entry; invalid: there is none, and the message lists the entries.
    [[nodiscard]] Result<std::size_t> entry(std::string_view name) const;

    // The stored bytes of slice `index` of the manifest; null: this node does not have them. Shared, so that an eviction
    // cannot free them while they are sent.
    [[nodiscard]] std::shared_ptr<const ByteBuffer> stored_slice(std::size_t index) const;
    // The index of the slice for a target, if the manifest lists it, whether or not its bytes are here.
    [[nodiscard]] std::optional<std::size_t> slice_index(std::string_view triple, Forms form) const;
    // The raw bytes of a slice that is here: verified on arrival, decompressed now.
    [[nodiscard]] Result<ByteBuffer> raw_slice(std::size_t index) const;
    // Adds a slice that arrived; invalid when its size or hash is not the manifest's.
    [[nodiscard]] Status add_slice(std::size_t index, Bytes stored);
    // The same for a slice whose hash is known. Nothing is copied, so a large slice takes no longer.
    struct HashedSlice {
        std::shared_ptr<const ByteBuffer> bytes;
        SliceHash hash;
    };
    [[nodiscard]] Status add_slice(std::size_t index, HashedSlice stored);
    // Forgets slices (eviction), all or all except those given; the manifest stays.
    void drop_slices(std::initializer_list<std::optional<std::size_t>> but = {});
    // The memory that the manifest takes, as bytes and as a struct.
    [[nodiscard]] std::size_t manifest_bytes_held() const { return manifest_bytes_held_; }
    // The stored bytes of the slices held here.
    [[nodiscard]] std::size_t slice_bytes_held() const;

private:
    PackageStore() = default;

    ByteBuffer manifest_bytes_;
    wire::Manifest manifest_;
    Digest digest_;
    std::vector<FunctionId> function_ids_;
    std::size_t manifest_bytes_held_ = 0;
    mutable Mutex mutex_;
    std::vector<std::shared_ptr<const ByteBuffer>> slices_ GUARDED_BY(mutex_);
};

}  // namespace rove
