// Leaders: the leaders of the engines that use a cache: what each one runs, and what it may still use of forgotten packages.
//
// Engines look functions up and use them under their own lock, without the cache's. So a forgotten package stays in memory until each engine
// has declared, under its lock, that it holds no function that it has looked up and not entered (let_go).
//
// Threads: under the lock of the cache.
//
// Invariants: places keep their addresses for as long as the cache exists. A package that is forgotten later waits for each engine's next
// declaration.
#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "code/leading.hpp"
#include "code/package_code.hpp"

namespace rove::code {

class Leaders {
public:
    Leaders() = default;
    Leaders(const Leaders&) = delete;
    ~Leaders() NO_THREAD_SAFETY_ANALYSIS { drop_until(~std::uint64_t{0}); }  // no other thread has it any more

    [[nodiscard]] Leading& add() REQUIRES(lock_of<CodeCache>);
    // Whether the leader of any engine runs code of the package. To be called after Uses::fence_others().
    [[nodiscard]] bool any_runs(const PackageCode& package) const REQUIRES(lock_of<CodeCache>);
    // Keeps a package that is no longer known until all engines have made that declaration, and then frees it. Needs no memory.
    void keep_for_all(std::unique_ptr<PackageCode> forgotten) noexcept REQUIRES(lock_of<CodeCache>);
    void let_go(Leading& place) REQUIRES(lock_of<CodeCache>);

private:
    void drop_what_all_have_let_go() noexcept REQUIRES(lock_of<CodeCache>);
    void drop_until(std::uint64_t number) noexcept REQUIRES(lock_of<CodeCache>);

    std::deque<Leading> places_ GUARDED_BY(lock_of<CodeCache>);
    std::atomic<std::uint64_t> forgotten_{0};  // packages forgotten, ever
    // The package forgotten first, and a place for the next one.
    std::unique_ptr<PackageCode> first_ GUARDED_BY(lock_of<CodeCache>);
    std::unique_ptr<PackageCode>* end_ GUARDED_BY(lock_of<CodeCache>) = &first_;
};

}  // namespace rove::code
