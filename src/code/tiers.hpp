// Tiers: the form in which a package is made ready to run, and what its calls wait for until then.
//
// Threads: under the lock of the cache.
//
// Invariants: while the bitcode of a package without code is queued or compiled, no image of it is loaded, because the compile assumes that
// there are no statics yet.
#pragma once

#include <optional>
#include <string>

#include "code/image_loads.hpp"

namespace rove::code {

class Tiers {
public:
    Tiers(const CodeOptions& options, const Symbols& symbols, ImageLoads& images, Compiles& compiles)
        : options_(options), symbols_(symbols), images_(images), compiles_(compiles) {}

    // Nothing: the package is ready. Errors as CodeCache::enter's. `asker`: the node that waits for it, kNoNode for this one.
    [[nodiscard]] Result<std::optional<Awaited>> make_ready(PackageCode& package, NodeId asker)
        REQUIRES(lock_of<CodeCache>);
    // Notes that this node waits for a package that is being made ready; it will call make_ready() when that has ended.
    void add_asker(PackageCode& package, NodeId asker) REQUIRES(lock_of<CodeCache>) {
        compiles_.add_asker(package, asker);
    }
    // The error for a package that has a form for this node whose code has not arrived.
    [[nodiscard]] Error why_incomplete(const PackageStore& package) const;

private:
    [[nodiscard]] std::string why_no_form() const;

    const CodeOptions& options_;
    const Symbols& symbols_;
    ImageLoads& images_;
    Compiles& compiles_;
};

}  // namespace rove::code
