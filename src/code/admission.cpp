#include "code/admission.hpp"

#include <utility>

namespace rove::code {

Result<std::shared_ptr<PackageStore>> Admission::add(const std::shared_ptr<PackageStore>& package, bool resident,
                                                     NodeId from) {
    PackageCode* const known = known_.package(package->digest());
    if (known == nullptr) {
        ROVE_TRY(PackageCode * made, make_known(package, resident, from));
        if (resident) known_.note_resident(*made);
        evictor_.trim(made);
        return package;
    }
    PackageCode& code = *known;
    if (code.store != package)
        for (std::size_t i = 0; i < package->manifest().slices.size(); ++i)
            if (auto slice = package->stored_slice(i))
                ROVE_CHECK(code.store->add_slice(i, {std::move(slice), package->manifest().slices[i].hash}));
    if (resident) known_.note_resident(code);
    code.resident = code.resident || resident;
    budgets_.count(code);
    evictor_.trim(&code);
    return code.store;
}

Result<PackageCode*> Admission::make_known(const std::shared_ptr<PackageStore>& package, bool resident, NodeId from) {
    Forgetting forgetting;
    if (known_.packages().size() >= options_.packages_max && !forget_one(forgetting))
        return fail(ErrorCode::overloaded,
                    "{} knows {} packages, the most a node does, and all of them are in use, or stay (they have "
                    "statics or constructors, are pinned, or are interfaces)",
                    options_.node, options_.packages_max);
    auto made = std::make_unique<PackageCode>(cache_, package);
    budgets_.make_places(known_.packages().size());
    made->resident = resident;
    made->compiled_for = from;
    made->pinned = package->manifest().pinned;
    made->scope.destructors = &made->destructors;
    const std::size_t bytes = package->manifest_bytes_held() + package->function_ids().size() * kFunctionBytes;
    while (!resident && budgets_.manifest_bytes() + bytes > budgets_.manifest_bytes_max())
        if (!forget_one(forgetting))
            return fail(ErrorCode::overloaded,
                        "{} holds {} bytes of manifests, the most that it may are {}, and all of them are in use, or "
                        "stay (they have statics or constructors, are pinned, or are interfaces)",
                        options_.node, budgets_.manifest_bytes(), budgets_.manifest_bytes_max());
    ROVE_CHECK(make_room(package->manifest().entries.size(), forgetting));
    PackageCode& code = known_.add(std::move(made));
    code.last_used.store(uses_.advance(), std::memory_order_relaxed);  // newer than all earlier uses
    budgets_.count(code);
    return &code;
}

Status Admission::make_room(std::size_t functions, Forgetting& forgetting) {
    while (known_.room() < functions)
        if (!forget_one(forgetting))
            return fail(ErrorCode::overloaded,
                        "{} knows {} functions, the most a node does, and all of them are in use, or stay (they have "
                        "statics or constructors, are pinned, or are interfaces)",
                        options_.node, kFunctionsMax);
    return {};
}

Result<Function*> Admission::add_resident(const FunctionId& id, std::string name, EntryPoint entry) {
    if (Function* const known = known_.find(id)) return known;
    Forgetting forgetting;
    ROVE_CHECK(make_room(1, forgetting));
    return known_.add(id, std::move(name), entry);
}

// Makes room by forgetting a package: the one that has not been used for the longest time among those that have no code, and no statics in
// use; if all have code, among those that are idle.
bool Admission::forget_one(Forgetting& forgetting) {
    // One barrier is enough for all of them: their functions had no code before it, so a thread that enters one later waits for the lock.
    if (!forgetting.fenced) uses_.fence_others();
    forgetting.fenced = true;
    const auto find = [this]() REQUIRES(lock_of<CodeCache>) {
        return candidates_.forgettable().oldest(uses_.advance(),
                                                [this](const PackageCode& package)
                                                    REQUIRES(lock_of<CodeCache>) { return uses_.is_busy(package); });
    };
    PackageCode* oldest = find();
    if (oldest == nullptr) {
        evictor_.evict_idle();
        oldest = find();
    }
    if (oldest == nullptr) return false;
    budgets_.uncount(*oldest);
    uses_.leaders().keep_for_all(known_.forget(*oldest));
    return true;
}

}  // namespace rove::code
