// Lacking: names that code needs and that nothing on this node defines. An entry that needs such a name does not run. When an interface
// adds the name later, its address is written where the code expects it; the package is otherwise unchanged.
//
// Threads: functions that REQUIRE the lock of the cache are called under it; the others by the thread that loads or compiles the package.
//
// Invariants: a place for a name is written once, while no thread reads it: only entries that need the name reach it, and they do not run
// before.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "code/package_code.hpp"
#include "code/symbols.hpp"

namespace rove::code {

class Lacking {
public:
    Lacking(const std::string& node, const Symbols& symbols) : node_(node), symbols_(symbols) {}

    // ---- while code is linked
    // Marks one import in `lacks`; and all imports that name extensions which this CPU lacks (base/cpu.hpp).
    static void lack(Lacks& lacks, const wire::Manifest& manifest, std::size_t import);
    static void lack_of_cpu(Lacks& lacks, const wire::Manifest& manifest);
    // The address of each import; null: no relocation of the image refers to it, or the name does not exist, which is marked in `lacks`.
    [[nodiscard]] std::vector<void*> find_imports(const PackageCode& package, const wire::Image& image,
                                                  Lacks& lacks) const;
    // failed: the package as a whole needs one of them.
    [[nodiscard]] Status check(PackageCode& package, const Lacks& lacks) const;
    // The remedy for a name that does not exist, for messages.
    [[nodiscard]] static std::string remedy(const PackageCode& package);

    // ---- for a loaded package
    // Writes the addresses of the names that the function lacks and that interfaces have added since.
    [[nodiscard]] Status put_names(Function& function) const REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Error why_no_entry(const Function& function) const REQUIRES(lock_of<CodeCache>);

private:
    [[nodiscard]] Error why_lacking(const PackageCode& package, const std::vector<std::string_view>& names,
                                    const std::string& of) const;

    const std::string& node_;  // for messages
    const Symbols& symbols_;
};

}  // namespace rove::code
