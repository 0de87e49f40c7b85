// Compiles: compiles the bitcode of packages for the CPU of this node, in the background.
//
// Threads: under the lock of the cache; do_next() on the worker for bitcode, which compiles without the lock.
//
// Invariants: a package is neither evicted nor forgotten while it is compiled, and its code is not replaced: no image is loaded then.
// A package whose bitcode cannot be compiled keeps running its image.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "bitcode/compiler.hpp"
#include "code/constructors.hpp"
#include "code/dependencies.hpp"
#include "code/lacking.hpp"
#include "code/new_code.hpp"

namespace rove::code {

class Compiles {
public:
    // The parts of the cache that this one uses. They outlive it.
    struct Beside {
        CacheLock& lock;
        const CodeOptions& options;
        const Symbols& symbols;
        Budgets& budgets;
        Evictor& evictor;
        CompileQueue& queue;
        Dependencies& dependencies;
        const Lacking& lacking;
        NewCodes& new_codes;
        Workers& workers;
        Constructors& constructors;
    };
    explicit Compiles(Beside beside)
        : lock_(beside.lock),
          options_(beside.options),
          symbols_(beside.symbols),
          budgets_(beside.budgets),
          evictor_(beside.evictor),
          queue_(beside.queue),
          dependencies_(beside.dependencies),
          lacking_(beside.lacking),
          new_codes_(beside.new_codes),
          workers_(beside.workers),
          constructors_(beside.constructors) {}

    // Does nothing if the package is queued or was compiled already, or if its bitcode has not arrived or may not be run. overloaded: there
    // is no thread for it now.
    [[nodiscard]] Status queue(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    // Notes that this node waits for the package, too. Does nothing if it is not queued.
    void add_asker(PackageCode& package, NodeId asker) REQUIRES(lock_of<CodeCache>) {
        queue_.add_asker(package, asker);
    }
    // Compiles the next package. False: there is none.
    [[nodiscard]] bool do_next() REQUIRES(lock_of<CodeCache>);
    // Opens the compiler. An error is ignored: it occurs again when the code is needed, and is reported then. Called without the lock.
    void warm_up() const;
    [[nodiscard]] bitcode::Compiler* used() const { return used_; }  // null: nothing was compiled

private:
    // The parts of a package that are loaded while its bitcode is compiled.
    struct Loaded {
        std::shared_ptr<DataSegment> data;
        std::span<const PackageCode::StaticPlace> statics;
        const LoadedImage* image;  // null: none
    };
    [[nodiscard]] static Result<bitcode::NamesInImage> names_in_image(const PackageCode& package, const Loaded& loaded);
    [[nodiscard]] Result<NewCode> compile(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    void compile_one(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Result<bitcode::Compiler*> compiler() const {
        return options_.compiler ? options_.compiler() : bitcode::compiler();
    }

    CacheLock& lock_;
    const CodeOptions& options_;
    const Symbols& symbols_;
    Budgets& budgets_;
    Evictor& evictor_;
    CompileQueue& queue_;
    Dependencies& dependencies_;
    const Lacking& lacking_;
    NewCodes& new_codes_;
    Workers& workers_;
    Constructors& constructors_;
    std::atomic<bitcode::Compiler*> used_ = nullptr;
};

}  // namespace rove::code
