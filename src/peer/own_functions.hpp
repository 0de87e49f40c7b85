// OwnFunctions: this program's own functions as they travel, for nodes that ask for their code later.
//
// Threads: under the engine's lock. Throws std::bad_alloc.
#pragma once

#include <memory>
#include <unordered_map>

#include "base/ids.hpp"
#include "lead/engine_lock.hpp"
#include "package/package.hpp"

namespace rove {

class OwnFunctions {
public:
    // Keeps a package of this program. Its first function is added last, because its presence means that all are there: if memory runs out
    // before that, the next call adds the others.
    void keep(const std::shared_ptr<PackageStore>& package) REQUIRES(lock_of<EngineLock>) {
        const std::vector<FunctionId>& functions = package->function_ids();
        if (functions.empty() || packages_.contains(functions.front())) return;
        for (auto function = functions.rbegin(); function != functions.rend(); ++function)
            packages_[*function] = package;
    }
    // Null: it is in no package that was kept.
    [[nodiscard]] std::shared_ptr<PackageStore> package_of(const FunctionId& function) const
        REQUIRES(lock_of<EngineLock>) {
        const auto found = packages_.find(function);
        return found != packages_.end() ? found->second : nullptr;
    }
    // A function of this program has one id as a resident and another one in the package that carries it.
    void note_shipped(const FunctionId& resident, const FunctionId& shipped) REQUIRES(lock_of<EngineLock>) {
        shipped_as_[resident] = shipped;
    }
    // The id itself where none is noted.
    [[nodiscard]] FunctionId shipped_as(const FunctionId& resident) const REQUIRES(lock_of<EngineLock>) {
        const auto found = shipped_as_.find(resident);
        return found != shipped_as_.end() ? found->second : resident;
    }

private:
    std::unordered_map<FunctionId, std::shared_ptr<PackageStore>> packages_;
    std::unordered_map<FunctionId, FunctionId> shipped_as_;
};

}  // namespace rove
