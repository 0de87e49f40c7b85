// Admission: makes packages and functions known, and forgets others to make room for them.
//
// Threads: under the lock of the cache.
//
// Invariants: what is known fits its bounds: packages, functions, bytes of manifests. Packages that are in use, or stay, are never
// forgotten.
#pragma once

#include <memory>
#include <string>

#include "code/evictor.hpp"

namespace rove::code {

class Admission {
public:
    // The parts of the cache that this one uses. They outlive it.
    struct Beside {
        CodeCache& cache;
        const CodeOptions& options;
        Known& known;
        Budgets& budgets;
        Candidates& candidates;
        Uses& uses;
        Evictor& evictor;
    };
    explicit Admission(Beside beside)
        : cache_(beside.cache),
          options_(beside.options),
          known_(beside.known),
          budgets_(beside.budgets),
          candidates_(beside.candidates),
          uses_(beside.uses),
          evictor_(beside.evictor) {}

    // These implement the functions of CodeCache.
    [[nodiscard]] Result<std::shared_ptr<PackageStore>> add(const std::shared_ptr<PackageStore>& package, bool resident,
                                                            NodeId from) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Result<Function*> add_resident(const FunctionId& id, std::string name, EntryPoint entry)
        REQUIRES(lock_of<CodeCache>);

private:
    // If several are forgotten together, one barrier is enough.
    struct Forgetting {
        bool fenced = false;
    };
    [[nodiscard]] Result<PackageCode*> make_known(const std::shared_ptr<PackageStore>& package, bool resident,
                                                  NodeId from) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Status make_room(std::size_t functions, Forgetting& forgetting) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] bool forget_one(Forgetting& forgetting) REQUIRES(lock_of<CodeCache>);

    CodeCache& cache_;
    const CodeOptions& options_;
    Known& known_;
    Budgets& budgets_;
    Candidates& candidates_;
    Uses& uses_;
    Evictor& evictor_;
};

}  // namespace rove::code
