#include "code/interfaces.hpp"

#include <algorithm>
#include <utility>

namespace rove::code {

Result<LoadReport> Interfaces::link(PackageCode& package) {
    if (package.linked) return LoadReport{};
    const wire::Manifest& manifest = package.store->manifest();
    ROVE_CHECK(budgets_.check_pinned(package, 0));
    ROVE_CHECK(evictor_.make_room_to_stay(package, manifest.exports.size() * kInterfaceNameBytes));
    LoadReport report;
    NameMap<void*> names;
    for (const std::string& name : manifest.exports) {
        const auto exported = package.exported.find(name);
        void* address = exported != package.exported.end() ? exported->second
                        : package.module                   ? package.module->find(name)
                                                           : nullptr;
        if (address == nullptr)
            return fail(ErrorCode::failed, "interface {} defines no '{}' that it says it exports", manifest.name, name);
        names[name] = address;
    }
    // A peer must not replace names that the node itself uses (rove_*, the C and C++ libraries) for the functions of other peers.
    if (!package.resident) {
        const Unlocked free(lock_.mutex());
        for (const std::string& name : manifest.exports) {
            if (!symbols_.is_of_process(name)) continue;
            names.erase(name);
            report.kept.push_back(name);
        }
    }
    if (!package.interface) linked_.push_back(&package);
    package.interface = true;  // never evicted: code that is linked to it has its addresses
    budgets_.count(package);
    report.replaced = symbols_.add_interface(manifest.name, names);
    package.linked = true;
    return report;
}

bool Interfaces::end_all() {
    return std::all_of(linked_.rbegin(), linked_.rend(), [](PackageCode* package) { return package->end(); });
}

}  // namespace rove::code
