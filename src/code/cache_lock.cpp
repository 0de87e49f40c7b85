#include "code/cache_lock.hpp"

#include <new>

namespace rove::code {

void CacheLock::wait_for_callbacks() {
    const Unlocked free(mutex_);
    const MutexLock none_calls_back(calling_back_);
}

Error CacheLock::why_cancelled() const {
    return {ErrorCode::cancelled, fmt::format("{} stopped while it was loaded", node_)};
}

Error CacheLock::no_memory_for(const PackageCode& package) const noexcept {
    try {
        return {ErrorCode::overloaded, fmt::format("{} has no memory to load package {}; call it later", node_,
                                                   package.store->manifest().name)};
    } catch (const std::bad_alloc&) {
        return no_memory();
    }
}

Error CacheLock::why_not_loaded(const PackageCode& package, const std::exception& thrown) const {
    if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) return no_memory_for(package);
    return {ErrorCode::failed,
            fmt::format("package {} cannot be loaded on {}: {}", package.store->manifest().name, node_, thrown.what())};
}

}  // namespace rove::code
