// Known: the packages that a node knows and their functions, by digest, by name, by id, by handle and by the address of loaded code.
//
// Threads: by_handle() is for any thread, without the lock; all else is called under the lock of the cache.
//
// Invariants: a handle means one function for as long as the node lives. A name means the newest package that has it; when that one is
// forgotten, the resident one.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "base/name_map.hpp"
#include "base/zero_pages.hpp"
#include "code/package_code.hpp"

namespace rove::code {

// Functions known at the same time: an index fits 16 bits of a handle. Evicted packages are forgotten to make room for new ones.
inline constexpr std::size_t kFunctionsMax = 65536;
// A handle means one function for as long as the node lives: the other 16 bits count the functions that had its index, and an index is no
// longer used after its 65,536th. 2^32 functions in all; at a million new ones a second, more than an hour.
inline constexpr unsigned kGenerationsMax = 65536;

class Known {
public:
    using Packages = std::unordered_map<Digest, std::unique_ptr<PackageCode>>;

    Known() : table_(kFunctionsMax), generations_(kFunctionsMax) {}

    // Null: no such handle, or of an older generation.
    [[nodiscard]] Function* by_handle(std::uint32_t handle) const {
        Function* function = table_[handle & 0xFFFFU].load(std::memory_order_acquire);
        return function != nullptr && function->handle == handle ? function : nullptr;
    }

    // ---- look-up; null: not found
    [[nodiscard]] Function* find(const FunctionId& id) const REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Function* find(std::string_view package, std::string_view entry) const REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Function* find(EntryPoint loaded) const REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] PackageCode* package(const Digest& digest) const REQUIRES(lock_of<CodeCache>);
    // The package is kept while the Running exists. invalid: it is not known.
    [[nodiscard]] Result<Running> hold(const PackageStore& store) const REQUIRES(lock_of<CodeCache>);

    // ---- all of them
    [[nodiscard]] const Packages& packages() const REQUIRES(lock_of<CodeCache>) { return packages_; }
    [[nodiscard]] std::size_t functions() const REQUIRES(lock_of<CodeCache>) { return functions_.size(); }

    // ---- adding and forgetting
    // How many more functions can get a handle.
    [[nodiscard]] std::size_t room() const REQUIRES(lock_of<CodeCache>) {
        return free_indices_.size() + (kFunctionsMax - indices_used_);
    }
    // Makes the package's functions. Precondition: there is room for them.
    PackageCode& add(std::unique_ptr<PackageCode> made) REQUIRES(lock_of<CodeCache>);
    // Adds a function of the process's own program. Precondition: there is room for it.
    Function* add(const FunctionId& id, std::string name, EntryPoint entry) REQUIRES(lock_of<CodeCache>);
    // To be called when the package becomes resident: its name means it again when a newer package of that name is forgotten.
    void note_resident(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    // Its handles mean nothing from then on. A peer that still uses one is asked which function it meant. The caller keeps the package in memory
    // until no engine uses a function of it any more (Leaders::keep_for_all).
    [[nodiscard]] std::unique_ptr<PackageCode> forget(PackageCode& package) REQUIRES(lock_of<CodeCache>);

    // ---- addresses of loaded code
    using ByAddress = std::map<EntryPoint, Function*>;
    void add_entries(ByAddress& loaded) noexcept REQUIRES(lock_of<CodeCache>) { by_address_.merge(loaded); }
    // To be called when the package's code is released.
    void take_back_entries(PackageCode& package) noexcept REQUIRES(lock_of<CodeCache>);

private:
    void number_functions(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    void take_back_names(PackageCode& package) noexcept REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] std::uint32_t take_index() REQUIRES(lock_of<CodeCache>);
    void free_index(std::uint32_t index) noexcept REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] std::uint32_t handle_of(std::uint32_t index) const REQUIRES(lock_of<CodeCache>) {
        return index | static_cast<std::uint32_t>(generations_[index]) << 16U;
    }

    Packages packages_ GUARDED_BY(lock_of<CodeCache>);
    std::unordered_map<FunctionId, Function*> functions_ GUARDED_BY(lock_of<CodeCache>);
    ByAddress by_address_ GUARDED_BY(lock_of<CodeCache>);  // entries of loaded code
    // Functions of the process's own program.
    std::vector<std::unique_ptr<Function>> residents_ GUARDED_BY(lock_of<CodeCache>);
    NameMap<PackageCode*> newest_ GUARDED_BY(lock_of<CodeCache>);           // by package name
    NameMap<PackageCode*> newest_resident_ GUARDED_BY(lock_of<CodeCache>);  // resident ones, by package name
    // 640 KiB, of which a node that knows few functions takes a few.
    ZeroPages<std::atomic<Function*>> table_;  // by a handle's index; read without the lock
    ZeroPages<std::uint16_t> generations_ GUARDED_BY(lock_of<CodeCache>);
    // The index that has been free for the longest time first.
    std::deque<std::uint32_t> free_indices_ GUARDED_BY(lock_of<CodeCache>);
    std::uint32_t indices_used_ GUARDED_BY(lock_of<CodeCache>) = 0;
    std::uint64_t packages_ever_ GUARDED_BY(lock_of<CodeCache>) = 0;
};

}  // namespace rove::code
