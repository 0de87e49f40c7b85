// Implements CodeCache by its parts (cache_state.hpp).
#include "code/cache.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "arch/arch.hpp"
#include "code/cache_state.hpp"

namespace rove::code {

namespace {

std::atomic<bool> left_in_place{false};

}  // namespace

std::string_view host_triple() {
    return arch::kTriple;
}

void leave_code_in_place() {
    left_in_place = true;
}

void prepare_process() {
    CodePool::prepare_process();
}

// ---- the cache's life

CodeCache::CodeCache(CodeOptions options) : state_(std::make_shared<State>(*this, std::move(options))) {}

CodeCache::~CodeCache() {
    stop();
    const bool all_have_ended = state_->end_packages();
    if (!left_in_place && all_have_ended && !state_->awaits_threads()) {
        bitcode::Compiler* const compiler = state_->compiles.used();
        state_.reset();
        if (compiler != nullptr) compiler->free_modules();
        return;
    }
    static constinit std::atomic<State*> all{nullptr};  // leak checkers find the States through this
    State* const left = state_.get();
    left->left_before = all;
    left->itself = std::move(state_);  // needs no memory
    while (!all.compare_exchange_weak(left->left_before, left)) continue;
}

// The last registered first, across packages, because one object may refer to another package's.
void CodeCache::State::end_objects_of(pid_t thread) {
    for (;;) {
        Destructors* last = nullptr;
        std::uint64_t number = 0;
        for (const auto& [digest, package] : known.packages()) {
            if (!package->destructors.awaits_threads()) continue;
            const std::uint64_t own = package->destructors.last_of_thread(thread);
            if (own > number) last = &package->destructors;
            number = std::max(number, own);
        }
        if (last == nullptr) return;
        last->run_last_of_thread(thread);
    }
}

// A destructor may call an interface. So interfaces are ended last, and each before those that it was linked to; and none of them if a package
// that may call it stays, or has constructors that still run.
bool CodeCache::State::end_packages() {
    // Thread-local objects before statics, as in a program: those of constructors, and those of the thread that ends this.
    constructors.destroy_objects([this](pid_t thread) { end_objects_of(thread); });
    end_objects_of(gettid());
    bool have_ended = true, constructs = false;
    for (const auto& [digest, package] : known.packages()) {
        if (package->interface) continue;
        constructs = constructs || package->constructing;
        if (!package->constructing) have_ended = package->end() && have_ended;
    }
    if (!have_ended || (constructs && !interfaces.empty())) return false;
    return interfaces.end_all();
}

bool CodeCache::State::awaits_threads() const {
    const LockOf held(lock.mutex());
    // While a package's constructors run, their worker keeps this State, and the package's objects are dropped at the end.
    return std::ranges::any_of(known.packages(), [](const auto& each) REQUIRES(lock_of<CodeCache>) {
        return !each.second->constructing && each.second->destructors.awaits_threads();
    });
}

void CodeCache::stop() {
    const TimePoint until = Clock::now() + kStopMax;
    const LockOf lock(state_->lock.mutex());
    state_->workers.stop(until);
}

void CodeCache::warm_up() {
    const LockOf lock(state_->lock.mutex());
    state_->warm_image = LoadedImage::rehearse(state_->pool);
    (void)PackageStore::from_manifest(wire::encode(wire::Manifest{.name = "nothing", .abi = ROVE_ABI_VERSION}));
    if (includes(state_->options.forms, Forms::bitcode))
        (void)state_->workers.start(Duty::bitcode, [compiles = &state_->compiles] { compiles->warm_up(); });
}

// ---- what is known

Result<std::shared_ptr<PackageStore>> CodeCache::add(const std::shared_ptr<PackageStore>& package, bool resident,
                                                     NodeId from) {
    const LockOf lock(state_->lock.mutex());
    return state_->admission.add(package, resident, from);
}

Result<Function*> CodeCache::add_resident(const FunctionId& id, std::string name, EntryPoint entry) {
    const LockOf lock(state_->lock.mutex());
    return state_->admission.add_resident(id, std::move(name), entry);
}

void CodeCache::slices_added(const Digest& digest) {
    const LockOf lock(state_->lock.mutex());
    PackageCode* const package = state_->known.package(digest);
    if (package == nullptr) return;
    // Its bitcode has arrived after an image that runs already.
    if (package->image && state_->options.forms == Forms::both)
        (void)state_->compiles.queue(*package);  // if this fails, the image keeps running
    state_->budgets.count(*package);
    state_->evictor.trim(package);
}

std::shared_ptr<PackageStore> CodeCache::package(const Digest& digest) const {
    const LockOf lock(state_->lock.mutex());
    PackageCode* const package = state_->known.package(digest);
    return package != nullptr ? package->store : nullptr;
}

std::shared_ptr<PackageStore> CodeCache::package_of(const Function& function) const {
    return function.package != nullptr ? function.package->store : nullptr;
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
    const Budgets& budgets = state_->budgets;
    return {.code_bytes = budgets.manifest_bytes() + budgets.held(Budget::evictable) + budgets.held(Budget::pinned) +
                          budgets.held(Budget::resident),
            .static_bytes = budgets.static_bytes(),
            .packages = state_->known.packages().size(),
            .functions = state_->known.functions(),
            .evictions = state_->evictor.evictions(),
            .loads = state_->new_codes.taken(),
            .pinned_bytes = budgets.held(Budget::pinned),
            .manifest_bytes = budgets.manifest_bytes()};
}

// ---- entering code

Leading& CodeCache::add_leader() {
    const LockOf lock(state_->lock.mutex());
    return state_->uses.leaders().add();
}

void CodeCache::let_go(Leading& place) {
    const LockOf lock(state_->lock.mutex());
    state_->uses.leaders().let_go(place);
}

EntryPoint CodeCache::enter_leading(Leading& place, Function& function) {
    return state_->uses.enter_leading(place, function);
}

void CodeCache::leave_leading(Leading& place) {
    Uses::leave_leading(place);
    left();
}

Entered CodeCache::keep_leading(Leading& place) {
    PackageCode* const package = Uses::keep_leading(place);
    return {nullptr, package != nullptr ? RanAs::image : RanAs::resident, package};
}

std::variant<Entered, Awaited, Error> CodeCache::enter(Function& function, NodeId asker) {
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
    if (package.forgotten != 0) return Awaited::code;  // forgotten since the function was looked up
    const Result<std::optional<Awaited>> awaited = state_->tiers.make_ready(package, asker);
    if (!awaited) {
        package.awaited_until.store(0, std::memory_order_relaxed);  // it may be evicted now
        return awaited.error();
    }
    if (*awaited) {
        package.await();
        return **awaited;
    }
    package.awaited_until.store(0, std::memory_order_relaxed);
    if (function.target.load(std::memory_order_relaxed) == nullptr)
        if (const Status put = state_->lacking.put_names(function); !put) return put.error();
    const EntryPoint target = function.target.load(std::memory_order_relaxed);
    if (target == nullptr) return state_->lacking.why_no_entry(function);
    Uses::note_call(package, state_->uses.advance());
    return std::variant<Entered, Awaited, Error>(std::in_place_type<Entered>, target,
                                                 function.ran.load(std::memory_order_relaxed), running.take_over());
}

Entered::~Entered() {
    if (package_ == nullptr) return;
    CodeCache& cache = package_->cache;
    package_->running.fetch_sub(1, std::memory_order_seq_cst);  // the package may be destroyed from here on
    cache.left();
}

void CodeCache::left() {
    if (state_->uses.is_over_budget()) evict();
}

// Not inlined, so that nearly all calls, which do not need it, save no registers for it.
[[gnu::noinline]] void CodeCache::evict() {
    const LockOf lock(state_->lock.mutex());
    state_->evictor.trim_if_possible();
}

// ---- loading before calls

Status CodeCache::load(const std::shared_ptr<PackageStore>& store) {
    ROVE_TRY(Running running, state_->hold(*store));
    PackageCode* const package = running.take_over();
    const Entered held(nullptr, RanAs::image, package);  // destroyed after the lock is released
    const LockOf lock(state_->lock.mutex());
    for (;;) {
        ROVE_TRY(const std::optional<Awaited> awaited, state_->tiers.make_ready(*package, kNoNode));
        if (!awaited) return {};
        if (*awaited == Awaited::code) return tl::unexpected<Error>(why_incomplete(*store));
        while (!state_->lock.has_stopped() && package->is_under_way()) state_->lock.wait();
        if (package->is_under_way())
            return fail(ErrorCode::cancelled, "{} stopped before package {} was loaded", state_->options.node,
                        store->manifest().name);
    }
}

Error CodeCache::why_incomplete(const PackageStore& package) const {
    return state_->tiers.why_incomplete(package);
}

Result<LoadReport> CodeCache::load_interface(const std::shared_ptr<PackageStore>& store) {
    ROVE_TRY(Running running, state_->hold(*store));
    PackageCode* const package = running.take_over();
    const Entered held(nullptr, RanAs::image,
                       package);  // its code stays between loading and linking; left after the lock
    ROVE_CHECK(load(store));
    const LockOf lock(state_->lock.mutex());
    return state_->interfaces.link(*package);
}

Status CodeCache::load_later(const std::shared_ptr<PackageStore>& package,
                             std::function<void(const Result<LoadReport>&)> done, NodeId asker) {
    const LockOf lock(state_->lock.mutex());
    return state_->loads.queue(*package, std::move(done), asker);
}

// Images are loaded first, because calls wait for them.
bool CodeCache::State::do_next(Duty duty) {
    return duty == Duty::images ? images.do_next() || loads.do_next() : compiles.do_next();
}

bool CodeCache::State::is_idle() const {
    return !images.has_queued() && compile_queue.empty() && !compile_queue.has_evicted() && !loads.has_queued() &&
           workers.working() == 0;
}

void CodeCache::wait_for_tiers() {
    const LockOf lock(state_->lock.mutex());
    while (!state_->is_idle()) state_->lock.wait();
}

}  // namespace rove::code
