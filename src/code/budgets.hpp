// Budgets: what is held for packages, counted against the bounds of CodeOptions, and whether more fits.
//
// Threads: under the lock of the cache.
//
// Invariants: every byte is counted once, in the package's `counted` or `reserved` and in the sums here. If more is held than fits,
// Uses::is_over_budget() is true, and the next thread that leaves code evicts. Counting takes no memory (make_places), because nothing may
// fail once code has been loaded.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "code/candidates.hpp"
#include "code/uses.hpp"

namespace rove::code {

// The least that pinned code may take, and the same for manifests, so that a node with a tiny budget can run small programs.
inline constexpr std::size_t kShareBytesMin = 1024 * 1024;
// The memory of one function in addition to its package's manifest: its Function, its name, its places in tables.
inline constexpr std::size_t kFunctionBytes = 256;
// The memory of one name of an interface in addition to its manifest: the name and its address, in two maps.
inline constexpr std::size_t kInterfaceNameBytes = 192;

class Budgets {
public:
    Budgets(const CodeOptions& options, Candidates& candidates, Uses& uses)
        : options_(options), candidates_(candidates), uses_(uses) {}

    // ---- counting
    // Makes room for that many packages and one more in the lists to which a package must be added without memory.
    void make_places(std::size_t packages) REQUIRES(lock_of<CodeCache>);
    // To be called after anything of the package was added or removed.
    void count(PackageCode& package) noexcept REQUIRES(lock_of<CodeCache>);
    void uncount(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    // Keeps room for code and statics that are being loaded, after check_pinned() and check_statics() have found enough of it. give_back()
    // returns the room that was not used by then.
    void reserve(PackageCode& package, std::size_t code, std::size_t statics) REQUIRES(lock_of<CodeCache>);
    void give_back(PackageCode& package) noexcept REQUIRES(lock_of<CodeCache>);
    struct GivesBack {
        Budgets& budgets;
        PackageCode& package;
        ~GivesBack() REQUIRES(lock_of<CodeCache>) { budgets.give_back(package); }
    };
    // The package has statics now, for which room was reserved.
    void keep_statics(PackageCode& package) noexcept REQUIRES(lock_of<CodeCache>) { keepers_.push_back(&package); }
    void drop_statics(PackageCode& package) REQUIRES(lock_of<CodeCache>);

    // ---- whether more fits
    [[nodiscard]] bool is_over() const REQUIRES(lock_of<CodeCache>) {
        return held(Budget::evictable) > options_.code_bytes_max -
                                             std::min(held(Budget::pinned), options_.code_bytes_max / 2) -
                                             std::min(manifest_bytes_, options_.code_bytes_max / 4);
    }
    [[nodiscard]] Status check_pinned(const PackageCode& package, std::size_t more) const REQUIRES(lock_of<CodeCache>);
    // For code that may be evicted: checks that it could stay until a call that waits for it has begun. Otherwise it would be evicted and
    // requested repeatedly.
    [[nodiscard]] Status check_evictable(const PackageCode& package, std::size_t bytes) const
        REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Status check_statics(const PackageCode& package, std::size_t bytes) const
        REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] bool fits_among_staying(const PackageCode& package, std::size_t more_bytes) const
        REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Error why_it_cannot_stay(const PackageCode& package) const REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] std::size_t manifest_bytes_max() const {
        return std::max(options_.code_bytes_max / 4, kShareBytesMin);
    }

    // ---- what could be evicted
    // Packages that have statics.
    [[nodiscard]] const std::vector<PackageCode*>& keepers() const REQUIRES(lock_of<CodeCache>) { return keepers_; }
    // Chooses packages to evict so that the rest fits, those used longest ago first, without those for which stays(package) is true. Calls
    // chosen(package) for each. Evicts nothing: it only removes them from Candidates::evictable(), until they are counted again.
    template <typename Stays, typename Chosen>
    [[nodiscard]] std::vector<PackageCode*> choose_victims(std::uint64_t now, const Stays& stays, const Chosen& chosen)
        REQUIRES(lock_of<CodeCache>);

    // ---- figures
    [[nodiscard]] std::size_t manifest_bytes() const REQUIRES(lock_of<CodeCache>) { return manifest_bytes_; }
    [[nodiscard]] std::size_t static_bytes() const REQUIRES(lock_of<CodeCache>) { return static_bytes_; }
    // Slices and loaded code.
    [[nodiscard]] std::size_t held(Budget budget) const REQUIRES(lock_of<CodeCache>) {
        return code_bytes_[static_cast<std::size_t>(budget)];
    }

private:
    void count_staying(const PackageCode::Counted& was, const PackageCode::Counted& now) noexcept
        REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] std::size_t& sum(Budget budget) REQUIRES(lock_of<CodeCache>) {
        return code_bytes_[static_cast<std::size_t>(budget)];
    }
    [[nodiscard]] std::size_t pinned_bytes_max() const { return std::max(options_.code_bytes_max / 2, kShareBytesMin); }

    const CodeOptions& options_;
    Candidates& candidates_;
    Uses& uses_;
    std::array<std::size_t, kBudgets> code_bytes_ GUARDED_BY(lock_of<CodeCache>){};
    std::size_t manifest_bytes_ GUARDED_BY(lock_of<CodeCache>) = 0;  // those of packages that are not resident
    std::size_t static_bytes_ GUARDED_BY(lock_of<CodeCache>) = 0;
    struct Staying {
        std::size_t packages = 0, functions = 0, manifest_bytes = 0;
    };
    Staying staying_ GUARDED_BY(lock_of<CodeCache>);  // sums of the packages that stay (Counted::stays)
    // Packages that have statics. This list and the next have room for all packages.
    std::vector<PackageCode*> keepers_ GUARDED_BY(lock_of<CodeCache>);
    std::vector<PackageCode*> pinned_ GUARDED_BY(lock_of<CodeCache>);  // packages that are counted as pinned
};

template <typename Stays, typename Chosen>
std::vector<PackageCode*> Budgets::choose_victims(std::uint64_t now, const Stays& stays, const Chosen& chosen) {
    std::vector<PackageCode*> victims;
    victims.reserve(candidates_.evictable().size());  // from here on nothing allocates memory
    const std::size_t before = held(Budget::evictable);
    while (is_over()) {
        PackageCode* oldest = candidates_.evictable().oldest(now, stays);
        if (oldest == nullptr) break;
        victims.push_back(oldest);
        chosen(*oldest);
        candidates_.evictable().keep(*oldest, false);
        sum(Budget::evictable) -= oldest->counted.code + oldest->counted.slices;  // as if evicted; corrected below
    }
    sum(Budget::evictable) = before;
    return victims;
}

}  // namespace rove::code
