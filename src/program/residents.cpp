#include "program/residents.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <unordered_map>

#include "base/fork.hpp"
#include "base/made_once.hpp"
#include "program/callables.hpp"

namespace rove {
namespace {

struct Table {
    Mutex mutex;
    std::unordered_map<FunctionId, std::unique_ptr<const Resident>> by_id GUARDED_BY(mutex);
    std::unordered_map<code::EntryPoint, const Resident*> by_entry GUARDED_BY(mutex);
    std::size_t own GUARDED_BY(mutex) = 0;
};

// Made by the first thread that needs it, mostly before main(); never destroyed, because nodes may outlive static objects.
Table& table() {
    static constinit MadeOnce<Table> kept;
    return kept.get([] {
        auto* made = new Table;
        hold_across_forks(made->mutex);
        return made;
    });
}

}  // namespace

const Resident& Residents::add(Resident resident) {
    Table& all = table();
    const MutexLock lock(all.mutex);
    if (const auto known = all.by_id.find(resident.id); known != all.by_id.end()) {
        // A function that a program and a library loaded by it both have is one function.
        if (known->second->name == resident.name && known->second->entry == resident.entry) return *known->second;
        std::fprintf(
            stderr,
            "rove: two functions of this program have one id (%s): %s and %s; give one of them another name, or, where "
            "its code need not travel, one of its own with rove::named<\"…\">\n",
            resident.id.hex().c_str(), known->second->name.c_str(), resident.name.c_str());
        std::abort();
    }
    if (!resident.built_in) ++all.own;
    auto kept = std::make_unique<const Resident>(std::move(resident));
    const Resident& added = *kept;
    all.by_entry[added.entry] = &added;
    all.by_id[added.id] = std::move(kept);
    return added;
}

const Resident* Residents::find(const FunctionId& id) {
    Table& all = table();
    const MutexLock lock(all.mutex);
    const auto known = all.by_id.find(id);
    return known != all.by_id.end() ? known->second.get() : nullptr;
}

const Resident* Residents::find(code::EntryPoint entry) {
    Table& all = table();
    const MutexLock lock(all.mutex);
    const auto known = all.by_entry.find(entry);
    return known != all.by_entry.end() ? known->second : nullptr;
}

bool Residents::none() {
    Table& all = table();
    const MutexLock lock(all.mutex);
    return all.own == 0;
}

std::vector<Resident> Residents::all() {
    Table& all = table();
    const MutexLock lock(all.mutex);
    std::vector<Resident> list;
    for (const auto& [id, resident] : all.by_id) list.push_back(*resident);
    return list;
}

}  // namespace rove
