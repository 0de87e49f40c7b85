#include "package/package.hpp"

#include <zstd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "package/digest.hpp"
#include "rove/rove.h"

namespace rove {
namespace {

constexpr std::string_view kMagic = "ROVEPKG1";
// If every slice had its largest size that would be 4 GiB; nobody ships that by accident.
constexpr std::uintmax_t kFileBytesMax = 512UL * 1024 * 1024;

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? "none" : text;
}

}  // namespace

Result<std::shared_ptr<PackageStore>> PackageStore::from_manifest(Bytes manifest) {
    std::shared_ptr<PackageStore> store(new PackageStore());
    store->manifest_bytes_.assign(manifest.begin(),
                                  manifest.end());  // copied first: a peer can change the bytes in a mailbox
    ROVE_TRY(store->manifest_, wire::decode_manifest(store->manifest_bytes_));
    if (store->manifest_.abi != ROVE_ABI_VERSION)
        return fail(ErrorCode::unsupported,
                    "package {} was built for abi {} of Rove, this is abi {}; build it again with this rove",
                    store->manifest_.name, store->manifest_.abi, ROVE_ABI_VERSION);
    store->digest_ = digest_of_manifest(store->manifest_bytes_);
    for (const std::string& entry : store->manifest_.entries)
        store->function_ids_.push_back(function_id(store->digest_, entry));
    {
        const MutexLock lock(store->mutex_);
        store->slices_.resize(store->manifest_.slices.size());
    }
    const wire::Manifest& read = store->manifest_;
    const std::size_t names =
        read.entries.size() + read.exports.size() + read.imports.size() + read.dependencies.size();
    store->manifest_bytes_held_ = sizeof(PackageStore) + 2 * manifest.size() + read.needs.size() +
                                  names * sizeof(std::string) + read.slices.size() * sizeof(wire::Slice) +
                                  read.entries.size() * sizeof(FunctionId);
    return store;
}

Result<std::shared_ptr<PackageStore>> PackageStore::parse(Bytes file) {
    Reader in(file);
    if (in.take(kMagic.size()).size() != kMagic.size() || as_text(file.first(kMagic.size())) != kMagic)
        return fail(ErrorCode::invalid, "not a Rove package: it does not begin with {}", kMagic);
    const auto manifest_bytes = in.number<std::uint32_t>();
    const Bytes manifest = in.take(manifest_bytes);
    if (!in.ok()) return fail(ErrorCode::invalid, "the package is truncated in its manifest; build or copy it again");
    ROVE_TRY(std::shared_ptr<PackageStore> store, from_manifest(manifest));
    for (std::size_t i = 0; i < store->manifest_.slices.size(); ++i) {
        const Bytes stored = in.take(store->manifest_.slices[i].stored_bytes);
        if (!in.ok())
            return fail(ErrorCode::invalid, "package {} is truncated; build or copy it again", store->manifest_.name);
        ROVE_CHECK(store->add_slice(i, stored));
    }
    if (!in.done())
        return fail(ErrorCode::invalid, "package {} has {} bytes too many; build or copy it again",
                    store->manifest_.name, in.rest().size());
    return store;
}

Result<std::shared_ptr<PackageStore>> PackageStore::open(const std::filesystem::path& path) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error) return fail(ErrorCode::invalid, "cannot read package {}: {}", path.string(), error.message());
    if (size > kFileBytesMax)
        return fail(ErrorCode::invalid, "package {} has {} bytes, over the limit of {}", path.string(), size,
                    kFileBytesMax);
    std::string text;
    try {
        std::ifstream stream(path, std::ios::binary);
        text.assign(std::istreambuf_iterator<char>(stream), {});
        if (!stream) return fail(ErrorCode::invalid, "cannot read package {}", path.string());
    } catch (const std::ios_base::failure& error) {  // of the buffer, in the middle of the file
        return fail(ErrorCode::invalid, "cannot read package {}: {}", path.string(), error.what());
    }
    Result<std::shared_ptr<PackageStore>> store = parse(as_bytes(text));
    if (!store) return prefixed(store.error(), path.string());
    return store;
}

ByteBuffer PackageStore::serialize(const wire::Manifest& manifest, const std::vector<ByteBuffer>& stored_slices) {
    const ByteBuffer encoded = wire::encode(manifest);
    Writer out;
    out.bytes(as_bytes(kMagic));
    out.number(static_cast<std::uint32_t>(encoded.size()));
    out.bytes(encoded);
    for (const ByteBuffer& slice : stored_slices) out.bytes(slice);
    return out.take();
}

Result<std::size_t> PackageStore::entry(std::string_view name) const {
    const auto found = std::find(manifest_.entries.begin(), manifest_.entries.end(), name);
    if (found != manifest_.entries.end()) return static_cast<std::size_t>(found - manifest_.entries.begin());
    if (manifest_.entries.empty())
        return fail(ErrorCode::invalid, "package {} has no entry '{}': it is an interface, and has none",
                    manifest_.name, name);
    return fail(ErrorCode::invalid, "package {} has no entry '{}'; it has: {}", manifest_.name, name,
                joined(manifest_.entries));
}

std::shared_ptr<const ByteBuffer> PackageStore::stored_slice(std::size_t index) const {
    const MutexLock lock(mutex_);
    return index < slices_.size() ? slices_[index] : nullptr;
}

std::optional<std::size_t> PackageStore::slice_index(std::string_view triple, Forms form) const {
    const wire::Slice* slice = manifest_.find(triple, form);
    if (slice == nullptr) return std::nullopt;
    return static_cast<std::size_t>(slice - manifest_.slices.data());
}

Result<ByteBuffer> PackageStore::raw_slice(std::size_t index) const {
    const std::shared_ptr<const ByteBuffer> stored = stored_slice(index);
    if (!stored) return fail(ErrorCode::invalid, "slice {} of package {} is not here", index, manifest_.name);
    const wire::Slice& slice = manifest_.slices[index];
    if (slice.compression == wire::Compression::none) return *stored;
    ByteBuffer raw(slice.raw_bytes);
    const std::size_t size = ZSTD_decompress(raw.data(), raw.size(), stored->data(), stored->size());
    if (ZSTD_isError(size) != 0 || size != raw.size())
        return fail(ErrorCode::invalid, "slice {} of package {} does not decompress to the {} bytes its manifest says",
                    index, manifest_.name, slice.raw_bytes);
    return raw;
}

Status PackageStore::add_slice(std::size_t index, Bytes stored) {
    if (stored.size() > wire::kSliceBytesMax)
        return fail(ErrorCode::invalid, "package {}: a slice of {} bytes; the limit is {}", manifest_.name,
                    stored.size(), wire::kSliceBytesMax);
    // The copy is checked, because a peer can change the bytes in a mailbox.
    auto copy = std::make_shared<const ByteBuffer>(stored.begin(), stored.end());
    const SliceHash hash = hash_of_slice(*copy);
    return add_slice(index, {std::move(copy), hash});
}

Status PackageStore::add_slice(std::size_t index, HashedSlice stored) {
    if (index >= manifest_.slices.size())
        return fail(ErrorCode::invalid, "package {} has {} slices, none numbered {}", manifest_.name,
                    manifest_.slices.size(), index);
    const wire::Slice& slice = manifest_.slices[index];
    if (stored.bytes->size() != slice.stored_bytes || stored.hash != slice.hash)
        return fail(
            ErrorCode::invalid,
            "package {}: its {} for {} was altered: the bytes are not those of its manifest; build or copy it again",
            manifest_.name, wire::to_string(slice.form), slice.triple);
    const MutexLock lock(mutex_);
    if (!slices_[index]) slices_[index] = std::move(stored.bytes);
    return {};
}

void PackageStore::drop_slices(std::initializer_list<std::optional<std::size_t>> but) {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < slices_.size(); ++i)
        if (std::find(but.begin(), but.end(), i) == but.end()) slices_[i].reset();
}

std::size_t PackageStore::slice_bytes_held() const {
    const MutexLock lock(mutex_);
    std::size_t bytes = 0;
    for (const auto& slice : slices_) bytes += slice ? slice->size() : 0;
    return bytes;
}

}  // namespace rove
