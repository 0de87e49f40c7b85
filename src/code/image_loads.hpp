// ImageLoads: loads the images of packages: small ones in place, the others on the worker for images.
//
// Threads: under the lock of the cache; do_next() on the worker for images, which links without the lock.
//
// Invariants: loading in place waits for no other thread, opens no library and runs no code of the package. A package is neither evicted
// nor forgotten while it is loaded.
#pragma once

#include <deque>
#include <memory>

#include "code/compiles.hpp"

namespace rove::code {

// The bounds of an image that is loaded in place, under the engine's lock: its bytes, both stored and decompressed, and its imports. It also
// has no libraries to be opened and no constructors to be run. Decompressing, copying and relocating it takes 0.1 ms, looking up its imports
// 0.25 ms, at 1 us each. A worker loads all other images.
inline constexpr std::size_t kQuickImageBytesMax = 64 * 1024;
inline constexpr std::size_t kQuickImportsMax = 256;

class ImageLoads {
public:
    // The parts of the cache that this one uses. They outlive it.
    struct Beside {
        CacheLock& lock;
        const CodeOptions& options;
        const Symbols& symbols;
        CodePool& pool;
        Budgets& budgets;
        Evictor& evictor;
        Dependencies& dependencies;
        const Lacking& lacking;
        NewCodes& new_codes;
        Workers& workers;
        Constructors& constructors;
        Compiles& compiles;
    };
    explicit ImageLoads(Beside beside)
        : lock_(beside.lock),
          options_(beside.options),
          symbols_(beside.symbols),
          pool_(beside.pool),
          budgets_(beside.budgets),
          evictor_(beside.evictor),
          dependencies_(beside.dependencies),
          lacking_(beside.lacking),
          new_codes_(beside.new_codes),
          workers_(beside.workers),
          constructors_(beside.constructors),
          compiles_(beside.compiles) {}

    // Loads the image of that slice if that is quick. False: the worker has to load it (queue).
    [[nodiscard]] Result<bool> load_if_quick(PackageCode& package, std::size_t slice) REQUIRES(lock_of<CodeCache>);
    // Queues the package for the worker. overloaded: there is no thread for it now.
    [[nodiscard]] Status queue(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] bool has_queued() const REQUIRES(lock_of<CodeCache>) { return !queue_.empty(); }
    // Loads the next image. False: there is none.
    [[nodiscard]] bool do_next() REQUIRES(lock_of<CodeCache>);

private:
    [[nodiscard]] bool is_quick(const PackageCode& package, std::size_t slice) const;
    // False: it has constructors.
    [[nodiscard]] Result<bool> load_in_place(PackageCode& package, std::size_t slice) REQUIRES(lock_of<CodeCache>);
    void load_apart(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Status load_image(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Result<NewCode> link_image(PackageCode& package, const wire::Image& image,
                                             const std::shared_ptr<DataSegment>& data);

    CacheLock& lock_;
    const CodeOptions& options_;
    const Symbols& symbols_;
    CodePool& pool_;
    Budgets& budgets_;
    Evictor& evictor_;
    Dependencies& dependencies_;
    const Lacking& lacking_;
    NewCodes& new_codes_;
    Workers& workers_;
    Constructors& constructors_;
    Compiles& compiles_;
    std::deque<PackageCode*> queue_ GUARDED_BY(lock_of<CodeCache>);  // at most one entry for each package
};

}  // namespace rove::code
