// Knowing packages and functions.
#include "code/cache.hpp"

#include <algorithm>
#include <atomic>

#include "arch/arch.hpp"
#include "code/cache_state.hpp"

namespace rove::code {

namespace {

std::atomic<bool> left_in_place{false};

}  // namespace

std::string_view host_triple() {
    return arch::kTriple;
}

Entered::~Entered() {
    if (package_ == nullptr) return;
    CodeCache& cache = package_->cache;
    package_->running.fetch_sub(1, std::memory_order_seq_cst);  // the package may be gone from here on
    cache.left();
}

CodeCache::CodeCache(CodeOptions options) : state_(std::make_shared<State>(*this, std::move(options))) {}

CodeCache::~CodeCache() {
    stop();
    state_->end_packages();
    if (!left_in_place && !state_->awaits_threads()) return;
    static constinit std::atomic<State*> all{nullptr};  // found by who looks for leaks
    State* const left = state_.get();
    left->left_before = all;
    left->itself = std::move(state_);  // which needs no memory
    while (!all.compare_exchange_weak(left->left_before, left)) continue;
}

// Runs destructors before any code is released, and without the lock, because they may call the node; no package comes or goes any more.
// A destructor may call an interface. So interfaces are ended last, and each before those that it was linked to.
void CodeCache::State::end_packages() {
    for (const auto& [digest, package] : packages)
        if (!package->interface && !package->constructing) package->end();
    for (auto package = interfaces.rbegin(); package != interfaces.rend(); ++package) (*package)->end();
}

// Threads of the program may have thread-local objects of a package, whose destructors are in its code.
bool CodeCache::State::awaits_threads() const {
    const LockOf held(lock.mutex());
    return std::ranges::any_of(packages, [](const auto& each) { return each.second->destructors.awaits_threads(); });
}

void CodeCache::left() {
    if (state_->over_budget.load(std::memory_order_relaxed)) evict();
}

// Not inlined, so that nearly all calls, which do not need it, save no registers for it.
[[gnu::noinline]] void CodeCache::evict() {
    const LockOf lock(state_->lock.mutex());
    state_->trim_if_possible();
}

Result<std::shared_ptr<PackageStore>> CodeCache::add(const std::shared_ptr<PackageStore>& package, bool resident) {
    const LockOf lock(state_->lock.mutex());
    const auto known = state_->packages.find(package->digest());
    if (known == state_->packages.end()) {
        ROVE_TRY(PackageCode * made, state_->make_known(package, resident));
        if (resident) state_->newest_resident[package->manifest().name] = made;
        state_->trim(made);
        return package;
    }
    PackageCode& code = *known->second;
    code.resident = code.resident || resident;
    if (resident) state_->newest_resident[package->manifest().name] = &code;
    if (code.store != package)
        for (std::size_t i = 0; i < package->manifest().slices.size(); ++i)
            if (auto slice = package->stored_slice(i))
                ROVE_CHECK(code.store->add_slice(i, {std::move(slice), package->manifest().slices[i].hash}));
    state_->count(code);
    state_->trim(&code);
    return code.store;
}

Result<PackageCode*> CodeCache::State::make_known(const std::shared_ptr<PackageStore>& package, bool resident) {
    Forgetting forgetting;
    if (packages.size() >= options.packages_max && !forget_one(forgetting))
        return fail(ErrorCode::overloaded,
                    "{} knows {} packages, the most a node does, and all of them are in use, or stay (they have "
                    "statics, are pinned, or are interfaces)",
                    options.node, options.packages_max);
    auto made = std::make_unique<PackageCode>(cache, package);
    for (auto* list : {&keepers, &pinned})  // a place for it, which it may need where there is no memory
        if (list->capacity() <= packages.size()) list->reserve(2 * packages.size() + 1);
    PackageCode& code = *made;
    code.resident = resident;
    code.pinned = package->manifest().pinned;
    code.number = packages_known++;
    code.scope.destructors = &code.destructors;
    const std::size_t bytes = package->manifest_bytes_held() + package->function_ids().size() * kFunctionBytes;
    while (!resident && manifest_bytes + bytes > manifest_bytes_max())
        if (!forget_one(forgetting))
            return fail(ErrorCode::overloaded,
                        "{} holds {} bytes of manifests, the most that it may are {}, and all of them are in use, or "
                        "stay (they have statics, are pinned, or are interfaces)",
                        options.node, manifest_bytes, manifest_bytes_max());
    ROVE_CHECK(number_functions(code, forgetting));
    for (const auto& function : code.functions) functions[function->id] = function.get();
    newest[package->manifest().name] = &code;
    code.last_used.store(epoch.fetch_add(1), std::memory_order_relaxed);  // newer than all that were used
    packages.emplace(package->digest(), std::move(made));
    count(code);
    return &code;
}

Result<std::uint32_t> CodeCache::State::free_index(Forgetting& forgetting) {
    while (free_indices.empty() && indices_used == kFunctionsMax)
        if (!forget_one(forgetting))
            return fail(ErrorCode::overloaded,
                        "{} knows {} functions, the most a node does, and all of them are in use, or stay (they have "
                        "statics, are pinned, or are interfaces)",
                        options.node, kFunctionsMax);
    if (free_indices.empty()) return indices_used++;
    const std::uint32_t index = free_indices.front();
    free_indices.pop_front();
    return index;
}

Result<Function*> CodeCache::add_resident(const FunctionId& id, std::string name, EntryPoint entry) {
    const LockOf lock(state_->lock.mutex());
    if (const auto known = state_->functions.find(id); known != state_->functions.end()) return known->second;
    State::Forgetting forgetting;
    ROVE_TRY(const std::uint32_t index, state_->free_index(forgetting));
    auto function = std::make_unique<Function>();
    function->id = id;
    function->name = std::move(name);
    function->handle = index | static_cast<std::uint32_t>(state_->generations[index]) << 16U;
    function->ran.store(RanAs::resident, std::memory_order_relaxed);
    function->target.store(entry, std::memory_order_release);
    state_->table[index].store(function.get(), std::memory_order_release);
    state_->functions[id] = function.get();
    state_->by_address.emplace(entry, function.get());
    state_->residents.push_back(std::move(function));
    return state_->residents.back().get();
}

Function* CodeCache::find(EntryPoint entry) const {
    const LockOf lock(state_->lock.mutex());
    const auto known = state_->by_address.find(entry);
    return known != state_->by_address.end() ? known->second : nullptr;
}

Status CodeCache::State::number_functions(PackageCode& package, Forgetting& forgetting) {
    const wire::Manifest& manifest = package.store->manifest();
    for (std::size_t i = 0; i < manifest.entries.size(); ++i) {
        const Result<std::uint32_t> free = free_index(forgetting);
        if (!free) {
            free_numbers(package);  // it is not going to live
            return tl::unexpected<Error>(free.error());
        }
        const std::uint32_t index = *free;
        auto function = std::make_unique<Function>();
        function->id = package.store->function_ids()[i];
        // The readable name of a function, which an entry that a program has bundled carries.
        const std::string& entry = manifest.entries[i];
        const std::size_t dot = entry.find('.');
        function->name = dot != std::string::npos ? entry.substr(dot + 1) : manifest.name + ":" + entry;
        function->handle = index | static_cast<std::uint32_t>(generations[index]) << 16U;
        function->entry = static_cast<std::uint32_t>(i);
        function->package = &package;
        table[index].store(function.get(), std::memory_order_release);
        package.functions.push_back(std::move(function));
    }
    return {};
}

// Makes room by forgetting a package: the one that has not been used for longest among those that have no code, and no statics that
// somebody relies on; if all have code, among those that are idle. Its handles mean nothing from then on. A peer that still uses one is
// asked which function it meant.
bool CodeCache::State::forget_one(Forgetting& forgetting) {
    // One barrier is enough for all of them: their functions had no code before it, so a thread that enters one later waits for the lock.
    if (!forgetting.fenced) fence_others();
    forgetting.fenced = true;
    const auto find = [this]() REQUIRES(lock_of<CodeCache>) {
        return forgettable.oldest(epoch.fetch_add(1), [this](const PackageCode& package)
                                                          REQUIRES(lock_of<CodeCache>) { return is_busy(package); });
    };
    PackageCode* oldest = find();
    if (oldest == nullptr) {
        evict_idle();
        oldest = find();
    }
    if (oldest == nullptr) return false;
    forget(*oldest);
    return true;
}

void CodeCache::State::forget(PackageCode& package) {
    uncount(package);
    free_numbers(package);
    for (const auto& function : package.functions) functions.erase(function->id);
    const std::string& name = package.store->manifest().name;
    if (const auto named = newest.find(name); named != newest.end() && named->second == &package) {
        const auto resident = newest_resident.find(name);
        if (resident != newest_resident.end() && resident->second != &package)
            named->second = resident->second;
        else
            newest.erase(named);
    }
    packages.erase(Digest(package.store->digest()));
}

void CodeCache::State::free_numbers(PackageCode& package) {
    for (const auto& function : package.functions) {
        const std::uint32_t index = function->handle & 0xFFFFU;
        table[index].store(nullptr, std::memory_order_release);
        // An index whose generations are used up is not given out again, so that an old handle never names another function.
        if (++generations[index] % kGenerationsMax != 0) free_indices.push_back(index);
    }
}

std::shared_ptr<PackageStore> CodeCache::package(const Digest& digest) const {
    const LockOf lock(state_->lock.mutex());
    const auto known = state_->packages.find(digest);
    return known != state_->packages.end() ? known->second->store : nullptr;
}

std::shared_ptr<PackageStore> CodeCache::package_of(const Function& function) const {
    return function.package != nullptr ? function.package->store : nullptr;
}

void CodeCache::slices_added(const Digest& digest) {
    const LockOf lock(state_->lock.mutex());
    const auto known = state_->packages.find(digest);
    if (known == state_->packages.end()) return;
    PackageCode& package = *known->second;
    // Bitcode that follows an image which runs already.
    if (package.image && state_->options.forms == Forms::both)
        (void)state_->queue_compile(package);  // else the image goes on
    state_->count(package);
    state_->trim(&package);
}

Function* CodeCache::by_handle(std::uint32_t handle) const {
    Function* function = state_->table[handle & 0xFFFFU].load(std::memory_order_acquire);
    return function != nullptr && function->handle == handle ? function : nullptr;
}

Function* CodeCache::find(const FunctionId& id) const {
    const LockOf lock(state_->lock.mutex());
    const auto known = state_->functions.find(id);
    return known != state_->functions.end() ? known->second : nullptr;
}

Function* CodeCache::find(std::string_view name) const {
    if (const auto id = FunctionId::parse(name)) return find(*id);
    const std::size_t colon = name.rfind(':');
    if (colon == std::string_view::npos) return nullptr;
    const LockOf lock(state_->lock.mutex());
    const auto named = state_->newest.find(std::string(name.substr(0, colon)));
    if (named == state_->newest.end()) return nullptr;
    for (const auto& function : named->second->functions)
        if (std::string_view(function->name).substr(function->name.rfind(':') + 1) == name.substr(colon + 1))
            return function.get();
    return nullptr;
}

std::vector<std::shared_ptr<PackageStore>> CodeCache::packages() const {
    const LockOf lock(state_->lock.mutex());
    std::vector<std::shared_ptr<PackageStore>> stores;
    for (const auto& [digest, package] : state_->packages)
        if (package->resident) stores.push_back(package->store);
    return stores;
}

CodeCache::Usage CodeCache::usage() const {
    const LockOf lock(state_->lock.mutex());
    const State& state = *state_;
    std::size_t code_bytes = state.manifest_bytes;
    for (const std::size_t bytes : state.code_bytes) code_bytes += bytes;
    return {.code_bytes = code_bytes,
            .static_bytes = state.static_bytes,
            .packages = state.packages.size(),
            .functions = state.functions.size(),
            .evictions = state.evictions,
            .loads = state.loads,
            .pinned_bytes = state.held(Budget::pinned),
            .manifest_bytes = state.manifest_bytes};
}

void leave_code_in_place() {
    left_in_place = true;
}

void prepare_process() {
    CodePool::prepare_process();
}

void CodeCache::warm_up() {
    const LockOf lock(state_->lock.mutex());
    state_->warm_image = LoadedImage::rehearse(state_->pool);
    (void)PackageStore::from_manifest(wire::encode(wire::Manifest{.name = "nothing", .abi = ROVE_ABI_VERSION}));
    if (includes(state_->options.forms, Forms::bitcode)) (void)state_->start_worker(State::Duty::bitcode, true);
}

void CodeCache::wait_for_tiers() {
    const LockOf lock(state_->lock.mutex());
    while (!state_->images_queue.empty() || !state_->compile_queue.empty() || !state_->loads_queue.empty() ||
           state_->working > 0)
        state_->lock.wait();
}

}  // namespace rove::code
