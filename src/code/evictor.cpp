#include "code/evictor.hpp"

#include <algorithm>
#include <new>

namespace rove::code {

// Evicts a loaded package whose statics no call has used yet, so that they are freed with its code.
bool Evictor::evict_uncalled(const PackageCode& but) {
    const std::vector<PackageCode*>& keepers = budgets_.keepers();
    const auto found =
        std::find_if(keepers.begin(), keepers.end(), [&](const PackageCode* each) REQUIRES(lock_of<CodeCache>) {
            return each != &but && each->budget() == Budget::evictable && !each->keeps_statics() &&
                   !uses_.is_busy(*each);
        });
    if (found == keepers.end()) return false;
    PackageCode& package = **found;
    evict({&package});
    if (package.loaded() || package.keeps_statics()) return false;  // a call has used it in the meantime
    budgets_.drop_statics(package);
    return true;
}

Status Evictor::make_room_to_stay(const PackageCode& package, std::size_t more_bytes) {
    if (package.resident) return {};
    while (!budgets_.fits_among_staying(package, more_bytes))
        if (!evict_uncalled(package)) return tl::unexpected<Error>(budgets_.why_it_cannot_stay(package));
    return {};
}

Status Evictor::reserve(PackageCode& package, std::size_t code, std::size_t statics) {
    const bool stays = package.pinned || package.interface;
    ROVE_CHECK(stays ? budgets_.check_pinned(package, code) : budgets_.check_evictable(package, code));
    if (stays || statics > 0) ROVE_CHECK(make_room_to_stay(package, 0));
    ROVE_CHECK(budgets_.check_statics(package, statics));
    budgets_.reserve(package, code, statics);
    return {};
}

// Slices that this node does not run are kept for other nodes while there is room; they never evict anything. Of the slices that it runs
// a package has two at most, whatever its manifest lists.
void Evictor::drop_spare_slices(PackageCode& package) {
    if (package.resident || !budgets_.is_over()) return;
    PackageStore& store = *package.store;
    store.drop_slices(
        {store.slice_index(host_triple(), Forms::image), store.slice_index(host_triple(), Forms::bitcode)});
    budgets_.count(package);
}

// In this order, until the rest fits: the new package's slices that this node does not run; slices that arrived longest ago and were not
// called, and slices of pinned code; code that has not been used for the longest time. Packages in use are kept, and so is the form in
// which the new package, which is about to be called, runs.
void Evictor::trim(PackageCode* newcomer) {
    if (newcomer != nullptr) drop_spare_slices(*newcomer);
    if (!budgets_.is_over()) return;
    std::size_t awaited = 0;  // bytes for which calls wait
    for (const auto& [digest, package] : known_.packages())
        if (package->budget() == Budget::evictable && package->awaited())
            awaited += package->counted.code + package->counted.slices;
    const auto is_kept = [&](const PackageCode& package) {
        return &package == newcomer || (package.awaited() && awaited <= kAwaitedBytesMax);
    };
    const auto keeps = [&](const PackageCode& package)
                           REQUIRES(lock_of<CodeCache>) { return is_kept(package) || uses_.needs_slices(package); };
    const auto stays = [&](const PackageCode& package)
                           REQUIRES(lock_of<CodeCache>) { return is_kept(package) || uses_.is_used(package); };
    const std::uint64_t now = uses_.advance();
    while (budgets_.is_over()) {
        PackageCode* oldest = candidates_.with_slices().oldest(now, keeps);
        if (oldest == nullptr) break;
        if (oldest->awaited()) awaited -= std::min(awaited, oldest->counted.slices);
        if (oldest->waits_in_vain()) compile_queue_.leave(*oldest);
        oldest->store->drop_slices();  // its loaded code does not use them
        budgets_.count(*oldest);
    }
    // All packages to evict are chosen first, so that one barrier is enough. If some turn out to be running, a second round chooses others.
    for (int round = 0; round < 2 && budgets_.is_over(); ++round) {
        const std::vector<PackageCode*> victims =
            budgets_.choose_victims(now, stays, [&](const PackageCode& chosen) REQUIRES(lock_of<CodeCache>) {
                if (chosen.awaited()) awaited -= std::min(awaited, chosen.counted.code + chosen.counted.slices);
            });
        if (victims.empty()) break;
        evict(victims);
    }
}

// Evicts packages without statics, so no state is lost.
void Evictor::evict_idle() {
    std::vector<PackageCode*> victims;
    const std::uint64_t now = uses_.advance();
    while (victims.size() < kIdleAtOnce) {
        PackageCode* oldest = candidates_.idle().oldest(
            now, [this](const PackageCode& package) REQUIRES(lock_of<CodeCache>) { return uses_.is_busy(package); });
        if (oldest == nullptr) break;
        victims.push_back(oldest);
        candidates_.idle().keep(*oldest, false);
    }
    if (!victims.empty()) evict(victims);
}

void Evictor::trim_if_possible() noexcept {
    try {
        trim();
    } catch (const std::bad_alloc&) {  // the next trim() evicts what this one did not
    }
}

void Evictor::evict(const std::vector<PackageCode*>& victims) {
    for (PackageCode* package : victims)
        for (const auto& function : package->functions) function->target.store(nullptr, std::memory_order_seq_cst);
    uses_.fence_others();
    for (PackageCode* package : victims) {
        if (uses_.is_running(*package)) {  // partners: CodeCache::enter, Uses::enter_leading
            package->publish();
        } else {
            known_.take_back_entries(*package);
            if (package->module) compile_queue_.note_evicted();
            package->release_code();
            compile_queue_.leave(*package);
            package->compile = PackageCode::Compile::none;
            package->store->drop_slices();
            ++evictions_;
        }
        budgets_.count(*package);
    }
    if (compile_queue_.has_evicted()) lock_.notify_all();  // wakes the worker for bitcode
}

}  // namespace rove::code
