// The budgets of code, and eviction of what has not been used for longest.
#include <functional>
#include <utility>

#include "code/cache_state.hpp"

namespace rove::code {

namespace {

// From here on it is not compiled, unless it is queued again.
void leave(std::deque<PackageCode*>& queue, PackageCode& package) REQUIRES(lock_of<CodeCache>) {
    if (package.compile != PackageCode::Compile::queued) return;
    std::erase(queue, &package);
    package.compile = PackageCode::Compile::none;
}

// The largest of the packages that use up a budget, for the message to a package that finds no room.
constexpr std::size_t kHoldersNamed = 3;

template <typename Bytes>
std::string largest(std::vector<PackageCode*> holders, const Bytes& bytes_of) REQUIRES(lock_of<CodeCache>) {
    const std::size_t named = std::min(kHoldersNamed, holders.size());
    std::partial_sort(holders.begin(), holders.begin() + static_cast<std::ptrdiff_t>(named), holders.end(),
                      [&](PackageCode* a, PackageCode* b)
                          REQUIRES(lock_of<CodeCache>) { return bytes_of(*a) > bytes_of(*b); });
    std::string text;
    for (std::size_t i = 0; i < named; ++i)
        text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", holders[i]->store->manifest().name, bytes_of(*holders[i]));
    if (holders.size() > named) text += fmt::format(" and {} more", holders.size() - named);
    return text.empty() ? "none" : text;
}

// Of names that code of the package offers.
std::size_t names_held(const PackageCode& package) REQUIRES(lock_of<CodeCache>) {
    if (package.interface) return package.store->manifest().exports.size() * kInterfaceNameBytes;
    return package.exported.size() * kInterfaceNameBytes / 2;
}

}  // namespace

void CodeCache::State::uncount(PackageCode& package) {
    const PackageCode::Counted was = std::exchange(package.counted, {});
    manifest_bytes -= was.manifest;
    held(was.of_slices()) -= was.slices;
    held(was.budget) -= was.code;
    count_staying(was, {});
    std::erase(pinned, &package);
    std::erase(keepers, &package);
    static_bytes -= package.static_bytes();
    for (RecencyList* list : {&with_slices, &evictable, &idle, &forgettable}) list->keep(package, false);
}

void CodeCache::State::count(PackageCode& package) noexcept {
    const std::size_t slices = package.store->slice_bytes_held();
    const PackageCode::Counted now{.manifest = package.resident ? 0
                                                                : package.store->manifest_bytes_held() +
                                                                      package.functions.size() * kFunctionBytes +
                                                                      names_held(package),
                                   .slices = slices,
                                   .code = package.loaded_bytes() + package.reserved.code,
                                   .budget = package.budget(),
                                   .stays = package.stays(),
                                   .functions = package.functions.size()};
    const PackageCode::Counted was = std::exchange(package.counted, now);
    manifest_bytes = manifest_bytes - was.manifest + now.manifest;
    held(was.of_slices()) -= was.slices;
    held(was.budget) -= was.code;
    held(now.of_slices()) += now.slices;
    held(now.budget) += now.code;
    count_staying(was, now);
    if (was.budget != now.budget) {
        if (was.budget == Budget::pinned) std::erase(pinned, &package);
        if (now.budget == Budget::pinned) pinned.push_back(&package);
    }
    const bool may_go = now.budget == Budget::evictable;
    with_slices.keep(package, slices > 0 && (may_go ? !package.loaded() : now.budget == Budget::pinned));
    evictable.keep(package, may_go && package.loaded());
    idle.keep(package, may_go && package.loaded() && !package.data);
    forgettable.keep(package, may_go && !package.loaded() && !package.keeps_statics());
    uses.set_over_budget(is_over_budget());
}

void CodeCache::State::count_staying(const PackageCode::Counted& was, const PackageCode::Counted& now) noexcept {
    const auto add = [this](const PackageCode::Counted& counted, auto&& to) REQUIRES(lock_of<CodeCache>) {
        if (!counted.stays) return;
        staying.packages = to(staying.packages, 1);
        staying.functions = to(staying.functions, counted.functions);
        staying.manifest_bytes = to(staying.manifest_bytes, counted.manifest);
    };
    add(was, std::minus<std::size_t>());
    add(now, std::plus<std::size_t>());
}

bool CodeCache::State::fits_among_staying(const PackageCode& package, std::size_t more_bytes) const {
    const bool counted = package.counted.stays;
    const std::size_t also = counted ? 0 : 1;
    return staying.packages + also <= (options.packages_max + 1) / 2 &&
           staying.functions + also * package.functions.size() <= kFunctionsMax / 2 &&
           staying.manifest_bytes + also * package.counted.manifest + more_bytes <= manifest_bytes_max() / 2;
}

// A package that was loaded, and whose statics nobody has asked for yet, so that they go with its code. It stays known: the leader alone
// forgets, because it uses functions without the cache's lock, and this may be a worker.
bool CodeCache::State::evict_uncalled(const PackageCode& but) {
    const auto found =
        std::find_if(keepers.begin(), keepers.end(), [&](const PackageCode* each) REQUIRES(lock_of<CodeCache>) {
            return each != &but && each->budget() == Budget::evictable && !each->keeps_statics() &&
                   !uses.is_busy(*each);
        });
    if (found == keepers.end()) return false;
    PackageCode& package = **found;
    evict({&package});
    if (package.loaded() || package.keeps_statics()) return false;  // somebody has come
    static_bytes -= package.static_bytes();
    std::erase(keepers, &package);
    package.statics.clear();
    package.data.reset();
    count(package);
    return true;
}

Status CodeCache::State::check_stays(const PackageCode& package, std::size_t more_bytes) {
    if (package.resident) return {};
    while (!fits_among_staying(package, more_bytes))
        if (!evict_uncalled(package))
            return fail(
                ErrorCode::overloaded,
                "package {} is to stay for as long as {} runs (it has statics, is pinned, or is an interface), and {} "
                "packages of {} functions with manifests of {} bytes do so already, of at most {}, {} and {}; restart "
                "that node to drop them",
                package.store->manifest().name, options.node, staying.packages, staying.functions,
                staying.manifest_bytes, (options.packages_max + 1) / 2, kFunctionsMax / 2, manifest_bytes_max() / 2);
    return {};
}

// Whether there is room for code that cannot be evicted. It has a budget of its own, and never evicts other code. To be asked before such
// code is loaded or compiled, also when a second form of a loaded package is, and before a loaded package becomes an interface.
Status CodeCache::State::check_pinned(const PackageCode& package, std::size_t more) const {
    if (package.resident) return {};
    const std::size_t bytes = package.loaded_bytes() + more;
    const std::size_t counted = package.counted.budget == Budget::pinned ? package.counted.code : 0;
    if (held(Budget::pinned) - counted + bytes <= pinned_bytes_max()) return {};
    return fail(
        ErrorCode::overloaded,
        "package {} takes {} bytes of code that cannot be evicted (it is pinned, or an interface), and {} has {} of at "
        "most {} (half of its --code-budget, or 1 MiB): {}; give that node a larger one, or restart it",
        package.store->manifest().name, bytes, options.node, held(Budget::pinned), pinned_bytes_max(),
        largest(pinned, [](const PackageCode& each) REQUIRES(lock_of<CodeCache>) { return each.counted.code; }));
}

// The statics of a function that was called are its state; they stay as long as the node.
Status CodeCache::State::check_statics(const PackageCode& package, std::size_t bytes) const {
    if (static_bytes + bytes <= options.static_bytes_max) return {};
    return fail(
        ErrorCode::overloaded,
        "package {} has {} bytes of statics, and {} keeps {} of at most {} already: {}; restart that node to drop them",
        package.store->manifest().name, bytes, options.node, static_bytes, options.static_bytes_max,
        largest(keepers, [](const PackageCode& each) REQUIRES(lock_of<CodeCache>) { return each.static_bytes(); }));
}

Status CodeCache::State::reserve(PackageCode& package, std::size_t code, std::size_t statics) {
    const bool stays = package.pinned || package.interface;
    if (stays) ROVE_CHECK(check_pinned(package, code));
    if (stays || statics > 0) ROVE_CHECK(check_stays(package, 0));
    ROVE_CHECK(check_statics(package, statics));
    package.reserved = {.code = stays && !package.resident ? code : 0, .statics = statics};
    static_bytes += statics;
    if (package.reserved.code > 0) count(package);
    return {};
}

void CodeCache::State::give_back(PackageCode& package) noexcept {
    const PackageCode::Reserved was = std::exchange(package.reserved, {});
    static_bytes -= was.statics;
    if (was.code > 0) count(package);
}

// Slices that this node does not run are kept for other nodes while there is room; they never evict anything. Of the slices that it runs
// a package has two at most, whatever its manifest lists.
void CodeCache::State::drop_spare_slices(PackageCode& package) {
    if (package.resident || !is_over_budget()) return;
    PackageStore& store = *package.store;
    store.drop_slices(
        {store.slice_index(host_triple(), Forms::image), store.slice_index(host_triple(), Forms::bitcode)});
    count(package);
}

// In this order, until the rest fits: the new package's slices that this node does not run; slices that came longest ago and were not
// called, and slices of pinned code; code that has not been used for longest. What is in use stays, and so does the form that the new
// package, which is about to be called, runs as.
void CodeCache::State::trim(PackageCode* newcomer) {
    if (newcomer != nullptr) drop_spare_slices(*newcomer);
    if (!is_over_budget()) return;
    std::size_t awaited = 0;  // bytes that calls wait for
    for (const auto& [digest, package] : known.packages())
        if (package->budget() == Budget::evictable && package->awaited())
            awaited += package->counted.code + package->counted.slices;
    const auto is_kept = [&](const PackageCode& package) {
        return &package == newcomer || (package.awaited() && awaited <= kAwaitedBytesMax);
    };
    const auto keeps = [&](const PackageCode& package)
                           REQUIRES(lock_of<CodeCache>) { return is_kept(package) || uses.needs_slices(package); };
    const auto stays = [&](const PackageCode& package)
                           REQUIRES(lock_of<CodeCache>) { return is_kept(package) || uses.is_used(package); };
    const std::uint64_t now = uses.advance();
    while (is_over_budget()) {
        PackageCode* oldest = with_slices.oldest(now, keeps);
        if (oldest == nullptr) break;
        if (oldest->awaited()) awaited -= std::min(awaited, oldest->counted.slices);
        if (oldest->waits_in_vain()) leave(compile_queue, *oldest);
        oldest->store->drop_slices();  // what runs of it goes on: its code is apart from them
        count(*oldest);
    }
    // All packages to evict are chosen first, so that one barrier is enough. If some turn out to be running, a second round chooses others.
    for (int round = 0; round < 2 && is_over_budget(); ++round) {
        std::vector<PackageCode*> victims;
        victims.reserve(evictable.size());  // from here on nothing asks for memory
        const std::size_t before = held(Budget::evictable);
        while (is_over_budget()) {
            PackageCode* oldest = evictable.oldest(now, stays);
            if (oldest == nullptr) break;
            victims.push_back(oldest);
            if (oldest->awaited()) awaited -= std::min(awaited, oldest->counted.code + oldest->counted.slices);
            evictable.keep(*oldest, false);
            held(Budget::evictable) -= oldest->counted.code + oldest->counted.slices;  // as if gone; put right below
        }
        held(Budget::evictable) = before;
        if (victims.empty()) break;
        evict(victims);
    }
}

// Evicts the packages that have not been used for longest, so that they can be forgotten. Nothing that anybody relies on is lost.
void CodeCache::State::evict_idle() {
    std::vector<PackageCode*> victims;
    const std::uint64_t now = uses.advance();
    while (victims.size() < kIdleAtOnce) {
        PackageCode* oldest = idle.oldest(
            now, [this](const PackageCode& package) REQUIRES(lock_of<CodeCache>) { return uses.is_busy(package); });
        if (oldest == nullptr) break;
        victims.push_back(oldest);
        idle.keep(*oldest, false);
    }
    if (!victims.empty()) evict(victims);
}

void CodeCache::State::trim_if_possible() noexcept {
    try {
        trim();
    } catch (const std::bad_alloc&) {
    }
}

void CodeCache::State::evict(const std::vector<PackageCode*>& victims) {
    for (PackageCode* package : victims)
        for (const auto& function : package->functions) function->target.store(nullptr, std::memory_order_seq_cst);
    uses.fence_others();
    for (PackageCode* package : victims) {
        if (uses.is_running(*package)) {  // partners: CodeCache::enter, Uses::enter_leading
            package->publish();
        } else {
            known.take_back_entries(*package);
            package->release_code();
            leave(compile_queue, *package);
            package->compile = PackageCode::Compile::none;
            package->store->drop_slices();
            ++evictions;
        }
        count(*package);
    }
}

}  // namespace rove::code
