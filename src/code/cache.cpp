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
    for (const auto& [digest, package] : known.packages())
        if (!package->interface && !package->constructing) package->end();
    for (auto package = interfaces.rbegin(); package != interfaces.rend(); ++package) (*package)->end();
}

// Threads of the program may have thread-local objects of a package, whose destructors are in its code.
bool CodeCache::State::awaits_threads() const {
    const LockOf held(lock.mutex());
    return std::ranges::any_of(known.packages(),
                               [](const auto& each) { return each.second->destructors.awaits_threads(); });
}

EntryPoint CodeCache::enter_leading(Function& function) {
    return state_->uses.enter_leading(function);
}

void CodeCache::leave_leading() {
    state_->uses.leave_leading();
    left();
}

Entered CodeCache::keep_leading() {
    PackageCode* const package = state_->uses.keep_leading();
    return {nullptr, package != nullptr ? RanAs::image : RanAs::resident, package};
}

std::variant<Entered, Awaited, Error> CodeCache::enter(Function& function) {
    if (function.package == nullptr)
        return std::variant<Entered, Awaited, Error>(
            std::in_place_type<Entered>, function.target.load(std::memory_order_relaxed), RanAs::resident, nullptr);
    PackageCode& package = *function.package;
    Running running(package);
    if (const EntryPoint target = function.target.load(std::memory_order_seq_cst)) {
        if (package.awaited_until.load(std::memory_order_relaxed) != 0)
            package.awaited_until.store(0, std::memory_order_relaxed);
        Uses::note_call(package, state_->uses.now());
        return std::variant<Entered, Awaited, Error>(std::in_place_type<Entered>, target,
                                                     function.ran.load(std::memory_order_relaxed), running.take_over());
    }
    const LockOf lock(state_->lock.mutex());
    const Result<std::optional<Awaited>> awaited = state_->make_ready(package);
    if (!awaited) {
        package.awaited_until.store(0, std::memory_order_relaxed);  // it may make way for others
        return awaited.error();
    }
    if (*awaited) {
        package.await();
        return **awaited;
    }
    package.awaited_until.store(0, std::memory_order_relaxed);
    if (function.target.load(std::memory_order_relaxed) == nullptr)
        if (const Status put = state_->put_names(function); !put) return put.error();
    const EntryPoint target = function.target.load(std::memory_order_relaxed);
    if (target == nullptr) return state_->why_no_entry(function);
    Uses::note_call(package, state_->uses.advance());
    return std::variant<Entered, Awaited, Error>(std::in_place_type<Entered>, target,
                                                 function.ran.load(std::memory_order_relaxed), running.take_over());
}

Entered::~Entered() {
    if (package_ == nullptr) return;
    CodeCache& cache = package_->cache;
    package_->running.fetch_sub(1, std::memory_order_seq_cst);  // the package may be gone from here on
    cache.left();
}

void CodeCache::left() {
    if (state_->uses.is_over_budget()) evict();
}

// Not inlined, so that nearly all calls, which do not need it, save no registers for it.
[[gnu::noinline]] void CodeCache::evict() {
    const LockOf lock(state_->lock.mutex());
    state_->trim_if_possible();
}

Result<std::shared_ptr<PackageStore>> CodeCache::add(const std::shared_ptr<PackageStore>& package, bool resident) {
    const LockOf lock(state_->lock.mutex());
    PackageCode* const known = state_->known.package(package->digest());
    if (known == nullptr) {
        ROVE_TRY(PackageCode * made, state_->make_known(package, resident));
        if (resident) state_->known.has_become_resident(*made);
        state_->trim(made);
        return package;
    }
    PackageCode& code = *known;
    code.resident = code.resident || resident;
    if (resident) state_->known.has_become_resident(code);
    if (code.store != package)
        for (std::size_t i = 0; i < package->manifest().slices.size(); ++i)
            if (auto slice = package->stored_slice(i))
                ROVE_CHECK(code.store->add_slice(i, {std::move(slice), package->manifest().slices[i].hash}));
    state_->count(code);
    state_->trim(&code);
    return code.store;
}

Result<Function*> CodeCache::add_resident(const FunctionId& id, std::string name, EntryPoint entry) {
    const LockOf lock(state_->lock.mutex());
    if (Function* const known = state_->known.find(id)) return known;
    State::Forgetting forgetting;
    ROVE_CHECK(state_->make_room(1, forgetting));
    return state_->known.add(id, std::move(name), entry);
}

Result<PackageCode*> CodeCache::State::make_known(const std::shared_ptr<PackageStore>& package, bool resident) {
    Forgetting forgetting;
    if (known.packages().size() >= options.packages_max && !forget_one(forgetting))
        return fail(ErrorCode::overloaded,
                    "{} knows {} packages, the most a node does, and all of them are in use, or stay (they have "
                    "statics, are pinned, or are interfaces)",
                    options.node, options.packages_max);
    auto made = std::make_unique<PackageCode>(cache, package);
    for (auto* list : {&keepers, &pinned})  // a place for it, which it may need where there is no memory
        if (list->capacity() <= known.packages().size()) list->reserve(2 * known.packages().size() + 1);
    made->resident = resident;
    made->pinned = package->manifest().pinned;
    made->scope.destructors = &made->destructors;
    const std::size_t bytes = package->manifest_bytes_held() + package->function_ids().size() * kFunctionBytes;
    while (!resident && manifest_bytes + bytes > manifest_bytes_max())
        if (!forget_one(forgetting))
            return fail(ErrorCode::overloaded,
                        "{} holds {} bytes of manifests, the most that it may are {}, and all of them are in use, or "
                        "stay (they have statics, are pinned, or are interfaces)",
                        options.node, manifest_bytes, manifest_bytes_max());
    ROVE_CHECK(make_room(package->manifest().entries.size(), forgetting));
    PackageCode& code = known.add(std::move(made));
    code.last_used.store(uses.advance(), std::memory_order_relaxed);  // newer than all that were used
    count(code);
    return &code;
}

Status CodeCache::State::make_room(std::size_t functions, Forgetting& forgetting) {
    while (known.room() < functions)
        if (!forget_one(forgetting))
            return fail(ErrorCode::overloaded,
                        "{} knows {} functions, the most a node does, and all of them are in use, or stay (they have "
                        "statics, are pinned, or are interfaces)",
                        options.node, kFunctionsMax);
    return {};
}

// Makes room by forgetting a package: the one that has not been used for longest among those that have no code, and no statics that
// somebody relies on; if all have code, among those that are idle.
bool CodeCache::State::forget_one(Forgetting& forgetting) {
    // One barrier is enough for all of them: their functions had no code before it, so a thread that enters one later waits for the lock.
    if (!forgetting.fenced) uses.fence_others();
    forgetting.fenced = true;
    const auto find = [this]() REQUIRES(lock_of<CodeCache>) {
        return forgettable.oldest(uses.advance(), [this](const PackageCode& package)
                                                      REQUIRES(lock_of<CodeCache>) { return uses.is_busy(package); });
    };
    PackageCode* oldest = find();
    if (oldest == nullptr) {
        evict_idle();
        oldest = find();
    }
    if (oldest == nullptr) return false;
    uncount(*oldest);
    known.forget(*oldest);
    return true;
}

std::shared_ptr<PackageStore> CodeCache::package(const Digest& digest) const {
    const LockOf lock(state_->lock.mutex());
    PackageCode* const package = state_->known.package(digest);
    return package != nullptr ? package->store : nullptr;
}

std::shared_ptr<PackageStore> CodeCache::package_of(const Function& function) const {
    return function.package != nullptr ? function.package->store : nullptr;
}

void CodeCache::slices_added(const Digest& digest) {
    const LockOf lock(state_->lock.mutex());
    PackageCode* const known = state_->known.package(digest);
    if (known == nullptr) return;
    PackageCode& package = *known;
    // Bitcode that follows an image which runs already.
    if (package.image && state_->options.forms == Forms::both)
        (void)state_->queue_compile(package);  // else the image goes on
    state_->count(package);
    state_->trim(&package);
}

Function* CodeCache::by_handle(std::uint32_t handle) const {
    return state_->known.by_handle(handle);
}

Function* CodeCache::find(EntryPoint entry) const {
    const LockOf lock(state_->lock.mutex());
    return state_->known.find(entry);
}

Function* CodeCache::find(const FunctionId& id) const {
    const LockOf lock(state_->lock.mutex());
    return state_->known.find(id);
}

Function* CodeCache::find(std::string_view name) const {
    if (const auto id = FunctionId::parse(name)) return find(*id);
    const std::size_t colon = name.rfind(':');
    if (colon == std::string_view::npos) return nullptr;
    const LockOf lock(state_->lock.mutex());
    return state_->known.find(name.substr(0, colon), name.substr(colon + 1));
}

std::vector<std::shared_ptr<PackageStore>> CodeCache::packages() const {
    const LockOf lock(state_->lock.mutex());
    std::vector<std::shared_ptr<PackageStore>> stores;
    for (const auto& [digest, package] : state_->known.packages())
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
            .packages = state.known.packages().size(),
            .functions = state.known.functions(),
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
