// OwnFunctions: this program's own functions as they travel, for nodes that ask for their code later.
//
// Threads: any. It has a lock of its own, which is taken under that of an engine, and under which nothing else is asked. Throws std::bad_alloc.
// Invariant: nothing is removed; what was kept or noted stays as long as the node.
#pragma once

#include <memory>
#include <unordered_map>

#include "base/ids.hpp"
#include "base/mutex.hpp"
#include "package/package.hpp"

namespace rove {

class OwnFunctions {
public:
    // Keeps a package of this program. Its first function is added last, because its presence means that all are there: if memory runs out
    // before that, the next call adds the others.
    void keep(const std::shared_ptr<PackageStore>& package) EXCLUDES(mutex_) {
        const MutexLock lock(mutex_);
        const std::vector<FunctionId>& functions = package->function_ids();
        if (functions.empty() || packages_.contains(functions.front())) return;
        for (auto function = functions.rbegin(); function != functions.rend(); ++function)
            packages_[*function] = package;
    }
    // Null: it is in no package that was kept.
    [[nodiscard]] std::shared_ptr<PackageStore> package_of(const FunctionId& function) const EXCLUDES(mutex_) {
        const MutexLock lock(mutex_);
        const auto found = packages_.find(function);
        return found != packages_.end() ? found->second : nullptr;
    }
    // A function of this program has one id as a resident and another one in the package that carries it.
    void note_shipped(const FunctionId& resident, const FunctionId& shipped) EXCLUDES(mutex_) {
        const MutexLock lock(mutex_);
        shipped_as_[resident] = shipped;
    }
    // The id itself where none is noted.
    [[nodiscard]] FunctionId shipped_as(const FunctionId& resident) const EXCLUDES(mutex_) {
        const MutexLock lock(mutex_);
        const auto found = shipped_as_.find(resident);
        return found != shipped_as_.end() ? found->second : resident;
    }

private:
    mutable Mutex mutex_;
    std::unordered_map<FunctionId, std::shared_ptr<PackageStore>> packages_ GUARDED_BY(mutex_);
    std::unordered_map<FunctionId, FunctionId> shipped_as_ GUARDED_BY(mutex_);
};

}  // namespace rove
