// New code of a package, before and after it becomes the package's.
//
// Threads: a NewCode belongs to the thread that makes it. NewCodes is called under the lock of the cache.
//
// Invariants: taking new code cannot fail and takes no memory. Everything that it needs was made before constructors ran, because nothing
// may fail after them, and without the lock, because a peer determines how much that is.
#pragma once

#include <memory>
#include <vector>

#include "code/budgets.hpp"
#include "code/known.hpp"
#include "code/uses.hpp"

namespace rove::code {

// New code of a package, and the memory that it needs in addition.
struct NewCode {
    void name_entry(const PackageCode& package, std::size_t function, void* address);

    std::unique_ptr<LoadedImage> image;
    std::unique_ptr<bitcode::CompiledModule> module;
    Lacks lacks;
    std::vector<EntryPoint> entries;  // of each of the package's functions; null: it has no code here
    Known::ByAddress by_address;
    std::vector<PackageCode::StaticPlace> statics;
    NameMap<void*> exported;
};

// The image in a slice that is stored here.
[[nodiscard]] Result<wire::Image> read_image(const PackageStore& package, std::size_t slice);

// Makes new code the package's: from then on its functions run it.
class NewCodes {
public:
    NewCodes(Known& known, Budgets& budgets, Uses& uses) : known_(known), budgets_(budgets), uses_(uses) {}

    // Room for it was reserved (Evictor::reserve).
    void take_image(PackageCode& package, const wire::Image& image, NewCode&& code) noexcept
        REQUIRES(lock_of<CodeCache>);
    void take_module(PackageCode& package, NewCode&& code) noexcept REQUIRES(lock_of<CodeCache>);
    // For code whose constructors have failed, but may have passed addresses of it or of its statics to others: keeps the code, which nothing
    // calls, if there is room among pinned code.
    void leave(PackageCode& package, NewCode&& code) noexcept REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] std::size_t taken() const REQUIRES(lock_of<CodeCache>) { return taken_; }

private:
    void go_on_with(PackageCode& package) noexcept REQUIRES(lock_of<CodeCache>);

    Known& known_;
    Budgets& budgets_;
    Uses& uses_;
    std::size_t taken_ GUARDED_BY(lock_of<CodeCache>) = 0;
};

}  // namespace rove::code
