#include "engine/node_functions.hpp"

#include <algorithm>
#include <filesystem>

namespace rove {

namespace {

// Bit 32 distinguishes a handle, which may be 0, from none.
constexpr std::uint64_t kIsHandle = std::uint64_t{1} << 32U;

}  // namespace

Status NodeFunctions::preload(const std::filesystem::path& folder) {
    if (folder.empty()) return {};
    std::error_code error;
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(folder, error))
        if (file.path().extension() == ".rove") files.push_back(file.path());
    if (error) return fail(ErrorCode::invalid, "packages directory {}: {}", folder.string(), error.message());
    std::sort(files.begin(), files.end());
    std::vector<std::shared_ptr<PackageStore>> functions;
    for (const auto& file : files) {  // interfaces first: functions link to them
        ROVE_TRY(std::shared_ptr<PackageStore> package, PackageStore::open(file));
        ROVE_TRY(package, cache_->add(package, true));
        if (!package->manifest().interface) {
            functions.push_back(package);
            continue;
        }
        if (const auto loaded = cache_->load_interface(package); !loaded)
            return prefixed(loaded.error(), file.string());
    }
    for (const auto& package : functions)
        if (const Status loaded = cache_->load(package); !loaded)
            return prefixed(loaded.error(), package->manifest().name);
    return {};
}

std::vector<Digest> NodeFunctions::digests() const {
    constexpr std::size_t kMost = 1024;
    std::vector<Digest> digests;
    for (const auto& package : cache_->packages())
        if (digests.size() < kMost) digests.push_back(package->digest());
    return digests;
}

std::optional<std::uint64_t> NodeFunctions::find(EngineLock& lock, std::string_view name) const {
    const Hold hold(lock);
    const code::Function* function = cache_->find(name);
    return function != nullptr ? std::optional(kIsHandle | function->handle) : std::nullopt;
}

std::optional<FunctionId> NodeFunctions::id_of(EngineLock& lock, std::uint64_t function) const {
    if (function >> 32U != 1) return std::nullopt;
    const Hold hold(lock);
    const code::Function* known = cache_->by_handle(static_cast<std::uint32_t>(function));
    return known != nullptr ? std::optional(known->id) : std::nullopt;
}

std::optional<code::Entered> NodeFunctions::hold(const code::Function& function) const {
    auto entered = cache_->enter(const_cast<code::Function&>(function));
    if (auto* held = std::get_if<code::Entered>(&entered)) return std::move(*held);
    return std::nullopt;
}

}  // namespace rove
