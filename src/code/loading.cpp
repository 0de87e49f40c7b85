// Making code ready, swapping its tier, and taking it away again.
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "code/cache_state.hpp"

namespace rove::code {

using wire::Form;

void PackageCode::end() {
    if (std::exchange(constructed, false) && image) image->destruct();
    destructors.run();
}

// The leader stores what it runs and then loads the target; who evicts clears the target and then looks at what runs. One of
// them must see the other: the evictor's barrier goes through all threads, so the leader's order needs only hold in its own.
EntryPoint CodeCache::enter_leading(Function& function) {
    if (function.package == nullptr) return function.target.load(std::memory_order_relaxed);  // nothing takes it away
    PackageCode& package = *function.package;
    state_->leader_runs.store(&package, std::memory_order_relaxed);
    if (state_->evictor_fences)
        std::atomic_signal_fence(std::memory_order_seq_cst);
    else
        std::atomic_thread_fence(std::memory_order_seq_cst);
    const EntryPoint target = function.target.load(std::memory_order_acquire);
    if (target == nullptr) {
        state_->leader_runs.store(nullptr, std::memory_order_relaxed);
        return nullptr;
    }
    // What it waited for has been compiled behind it.
    if (package.awaited.load(std::memory_order_relaxed)) package.awaited.store(false, std::memory_order_relaxed);
    const std::uint64_t epoch = state_->epoch.load(std::memory_order_relaxed);
    if (package.last_used.load(std::memory_order_relaxed) != epoch)
        package.last_used.store(epoch, std::memory_order_relaxed);
    return target;
}

void CodeCache::leave_leading() {
    state_->leader_runs.store(nullptr, std::memory_order_release);
    left();
}

Entered CodeCache::keep_leading() {
    PackageCode* package = state_->leader_runs.load(std::memory_order_relaxed);
    if (package == nullptr) return {nullptr, Ran::resident, nullptr};
    package->running.fetch_add(1, std::memory_order_seq_cst);
    state_->leader_runs.store(nullptr, std::memory_order_release);
    return {nullptr, Ran::image, package};
}

bool CodeCache::State::is_running(const PackageCode& package) const {
    if (evictor_fences) fence_all();
    return package.running.load(std::memory_order_seq_cst) != 0 ||
           leader_runs.load(std::memory_order_seq_cst) == &package;
}

// Expedited where the process has registered (CodePool::prepare_process), else the slow way, which always works.
void CodeCache::State::fence_all() {
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0) return;
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

bool CodeCache::State::can_fence_all() {
    const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL) != 0;
}

std::variant<Entered, Waiting, Error> CodeCache::enter(Function& function) {
    if (function.package == nullptr)
        return std::variant<Entered, Waiting, Error>(
            std::in_place_type<Entered>, function.target.load(std::memory_order_relaxed), Ran::resident, nullptr);
    PackageCode& package = *function.package;
    // Partner: State::evict.
    package.running.fetch_add(1, std::memory_order_seq_cst);
    if (const EntryPoint target = function.target.load(std::memory_order_seq_cst)) {
        if (package.awaited.load(std::memory_order_relaxed)) package.awaited.store(false, std::memory_order_relaxed);
        package.last_used.store(state_->epoch.load(std::memory_order_relaxed), std::memory_order_relaxed);
        return std::variant<Entered, Waiting, Error>(std::in_place_type<Entered>, target,
                                                     function.ran.load(std::memory_order_relaxed), &package);
    }
    State::Lock lock(state_->mutex);
    const auto not_now = [&package] { package.running.fetch_sub(1, std::memory_order_seq_cst); };
    const Result<State::Ready> ready = state_->make_ready(package);
    if (!ready) {
        not_now();
        return ready.error();
    }
    package.awaited = *ready != State::Ready::yes;
    if (*ready != State::Ready::yes) {
        not_now();
        return *ready == State::Ready::code ? Waiting::for_code : Waiting::for_compile;
    }
    const EntryPoint target = function.target.load(std::memory_order_relaxed);
    if (target == nullptr) {
        not_now();
        return Error(ErrorCode::failed,
                     function.name + " on " + state_->options.node + ": its package defines no such entry");
    }
    package.last_used.store(state_->epoch.fetch_add(1), std::memory_order_relaxed);
    return std::variant<Entered, Waiting, Error>(std::in_place_type<Entered>, target,
                                                 function.ran.load(std::memory_order_relaxed), &package);
}

bool CodeCache::State::stored(const PackageCode& package, Form form) const {
    const auto slice = package.store->slice_index(host_triple(), form);
    return slice && package.store->stored_slice(*slice) != nullptr;
}

Result<CodeCache::State::Ready> CodeCache::State::make_ready(PackageCode& package) {
    if (package.error) return tl::unexpected<Error>(*package.error);
    if (package.loaded()) {
        publish(package);  // an eviction that found it running may have cleared the targets meanwhile
        return Ready::yes;
    }
    // Even if an image has come meanwhile: the compiler was told that there are no statics yet, and would bring a second set.
    if (package.compile == PackageCode::Compile::queued) return Ready::compile;
    const bool image_fits =
        options.tiers != Tiers::bitcode && package.store->slice_index(host_triple(), Form::image).has_value();
    const bool bitcode_fits =
        options.tiers != Tiers::image && package.store->slice_index(host_triple(), Form::bitcode).has_value();
    if (!image_fits && !bitcode_fits)
        return fail(ErrorCode::unsupported, "package {} has no form that {} can run ({}{}); build it with --target {}",
                    package.store->manifest().name, options.node, host_triple(),
                    options.tiers == Tiers::both ? "" : ", one form pinned", host_triple());
    if (image_fits && stored(package, Form::image)) {
        const Status loaded = load_image(package, *package.store->slice_index(host_triple(), Form::image));
        if (!loaded) {
            package.error = loaded.error();
            return tl::unexpected<Error>(loaded.error());
        }
        if (options.tiers == Tiers::both && stored(package, Form::bitcode)) queue_compile(package);
        return Ready::yes;
    }
    if (bitcode_fits && stored(package, Form::bitcode)) {
        queue_compile(package);
        return Ready::compile;
    }
    return Ready::code;
}

std::string CodeCache::State::why_no_symbol(const PackageCode& package, const std::string& names) const {
    const std::string function =
        package.functions.size() == 1 ? package.functions.front()->name : package.store->manifest().name;
    return fmt::format("no symbol {} for {} on {}; load an interface that has it, or list its library with --dep",
                       names, function, options.node);
}

Status CodeCache::State::open_libraries(PackageCode& package) {
    if (package.libraries_open) return {};
    Result<std::vector<void*>> libraries = Symbols::open_libraries(package.store->manifest().dependencies);
    if (!libraries)
        return prefixed(libraries.error(),
                        fmt::format("package {} on {}", package.store->manifest().name, options.node));
    package.scope.libraries = std::move(*libraries);
    package.libraries_open = true;
    return {};
}

Status CodeCache::State::load_image(PackageCode& package, std::size_t slice) {
    const wire::Manifest& manifest = package.store->manifest();
    ROVE_CHECK(open_libraries(package));
    ROVE_TRY(const ByteBuffer raw, package.store->raw_slice(slice));
    ROVE_TRY(const wire::Image image, wire::decode_image(raw, manifest.imports.size()));
    if (!package.data && static_bytes + image.data_bytes > options.static_bytes_max)
        return fail(ErrorCode::overloaded, "package {} has {} bytes of statics, and {} keeps {} of at most {} already",
                    manifest.name, image.data_bytes, options.node, static_bytes, options.static_bytes_max);
    std::vector<void*> addresses(manifest.imports.size(), nullptr);
    std::string missing;
    for (const wire::Relocation& each : image.relocations) {
        if (each.kind != wire::Relocation::Kind::import || addresses[each.import] != nullptr) continue;
        addresses[each.import] = symbols.resolve(manifest.imports[each.import], package.scope);
        if (addresses[each.import] == nullptr &&
            missing.find("'" + manifest.imports[each.import] + "'") == std::string::npos)
            missing += (missing.empty() ? "'" : ", '") + manifest.imports[each.import] + "'";
    }
    if (!missing.empty()) return fail(ErrorCode::failed, "{}", why_no_symbol(package, missing));
    ROVE_TRY(package.image, LoadedImage::load(pool, image, package.data,
                                              [&addresses](std::size_t import) { return addresses[import]; }));
    if (!package.data && image.data_bytes > 0) {
        package.data = package.image->data();
        static_bytes += image.data_bytes;
    }
    for (const wire::Symbol& each : image.symbols) {
        void* address = package.image->address(each.segment, each.offset);
        if (each.kind == wire::Symbol::Kind::static_) {
            if (each.index > image.data_bytes) continue;  // more statics than bytes: nothing that a build makes
            if (package.statics.size() <= each.index) package.statics.resize(each.index + 1, nullptr);
            package.statics[each.index] = address;
        } else if (each.kind == wire::Symbol::Kind::entry && each.index < package.functions.size() &&
                   each.segment == wire::Segment::block) {
            Function& function = *package.functions[each.index];
            function.ran.store(package.resident ? Ran::resident : Ran::image, std::memory_order_relaxed);
            function.image = reinterpret_cast<EntryPoint>(address);
        } else if (each.kind == wire::Symbol::Kind::exported && each.index < manifest.exports.size()) {
            package.exported[manifest.exports[each.index]] = address;
        }
    }
    if (!package.constructed) {
        package.constructed = true;
        package.image->construct();
    }
    ++loads;
    publish(package);
    count(package);
    return {};
}

// Points every function to the best code there is.
void CodeCache::State::publish(PackageCode& package) {
    for (const auto& function : package.functions) {
        EntryPoint best = package.image ? function->image : nullptr;
        Ran ran = Ran::image;
        if (package.module) {
            const std::string& name = package.store->manifest().entries[function->entry];
            if (void* compiled = package.module->find(name)) {
                best = reinterpret_cast<EntryPoint>(compiled);
                ran = Ran::bitcode;
            }
        }
        function->ran.store(package.resident ? Ran::resident : ran, std::memory_order_relaxed);
        function->target.store(best, std::memory_order_seq_cst);
    }
}

void CodeCache::State::queue_compile(PackageCode& package) {
    if (package.compile != PackageCode::Compile::none || options.tiers == Tiers::image ||
        !stored(package, Form::bitcode))
        return;
    package.compile = PackageCode::Compile::queued;
    compile_queue.push_back(&package);  // at most one entry a package
    if (!compile_thread.joinable()) compile_thread = std::thread([this] { compile_loop(); });
    compile_changed.notify_all();
}

void CodeCache::State::compile_loop() {
    // Waking this thread is not to push aside the one that wakes it: that has a call to run, on the image.
    const sched_param none{};
    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
    Lock lock(mutex);
    for (;;) {
        compile_changed.wait(lock, [this] { return stopping || !compile_queue.empty(); });
        if (stopping) return;
        compiling = compile_queue.front();
        compile_queue.pop_front();
        const Digest digest = compiling->store->digest();
        compile_one(*compiling, lock);
        compiling = nullptr;
        trim();
        compile_changed.notify_all();
        if (options.on_ready) {
            lock.unlock();
            options.on_ready(digest);
            lock.lock();
        }
    }
}

// Compiles with the lock free; the package cannot be evicted or forgotten meanwhile.
Result<std::unique_ptr<jit::CompiledModule>> CodeCache::State::compile(PackageCode& package, Lock& lock) {
    ROVE_CHECK(open_libraries(package));
    ROVE_TRY(const ByteBuffer bitcode,
             package.store->raw_slice(*package.store->slice_index(host_triple(), Form::bitcode)));
    bool own_statics = false;
    const std::vector<void*> statics = package.statics;
    lock.unlock();
    Result<std::unique_ptr<jit::CompiledModule>> module = [&]() -> Result<std::unique_ptr<jit::CompiledModule>> {
        ROVE_TRY(jit::Engine * engine, jit::engine());
        return engine->compile(
            {.name = package.functions.size() == 1 ? package.functions.front()->name : package.store->manifest().name,
             .bitcode = bitcode,
             .resolve = [&](std::string_view name) { return symbols.resolve(std::string(name), package.scope); },
             .static_address = [&](std::size_t n) -> void* {
                 if (n < statics.size() && statics[n] != nullptr) return statics[n];
                 own_statics = true;
                 return nullptr;
             }});
    }();
    lock.lock();
    if (!module)
        return tl::unexpected<Error>(
            Error(module.error().code(), fmt::format("{} (on {})", module.error().message(), options.node)));
    // Statics that live in the compiled module would be lost with it.
    if (own_statics) package.pinned = true;
    return module;
}

void CodeCache::State::compile_one(PackageCode& package, Lock& lock) {
    Result<std::unique_ptr<jit::CompiledModule>> module = compile(package, lock);
    Status constructed;
    if (module && !package.constructed) {
        package.constructed = true;
        constructed = (*module)->run_constructors();
    }
    if (!module || !constructed) {
        package.compile = PackageCode::Compile::failed;
        // The image goes on, or begins if it came meanwhile; without one, that is the end of it.
        const bool image_follows = !module && options.tiers != Tiers::bitcode && stored(package, Form::image);
        if (!package.image && !image_follows) package.error = module ? constructed.error() : module.error();
        return;
    }
    package.compile = PackageCode::Compile::done;
    package.module = std::move(*module);
    ++loads;
    publish(package);
    count(package);
}

void CodeCache::State::count(PackageCode& package) {
    const std::size_t bytes = package.bytes();
    code_bytes += bytes - std::exchange(package.counted_bytes, bytes);
    over_budget.store(code_bytes > options.code_bytes_max, std::memory_order_relaxed);
}

// Takes the code of packages that have not been used for longest, until the rest fits. What cannot be taken stays.
void CodeCache::State::trim() {
    std::vector<PackageCode*> candidates;
    for (const auto& [digest, package] : packages)
        if (package->evictable() &&
            (package->loaded() || package->store->bytes_held() > package->store->manifest_bytes().size()))
            candidates.push_back(package.get());
    std::sort(candidates.begin(), candidates.end(),
              [](const PackageCode* a, const PackageCode* b) { return a->last_used.load() < b->last_used.load(); });
    for (PackageCode* package : candidates) {
        if (code_bytes <= options.code_bytes_max) break;
        if (evict(*package)) count(*package);
    }
}

bool CodeCache::State::evict(PackageCode& package) {
    for (const auto& function : package.functions) function->target.store(nullptr, std::memory_order_seq_cst);
    if (is_running(package)) {  // partners: CodeCache::enter, enter_leading
        publish(package);
        return false;
    }
    package.module.reset();
    package.image.reset();
    package.exported.clear();
    package.compile = PackageCode::Compile::none;
    package.store->drop_slices();
    ++evictions;
    return true;
}

Status CodeCache::load(const std::shared_ptr<PackageStore>& store) {
    State::Lock lock(state_->mutex);
    const auto known = state_->packages.find(store->digest());
    if (known == state_->packages.end())
        return fail(ErrorCode::invalid, "package {} is not known", store->manifest().name);
    PackageCode& package = *known->second;
    ROVE_TRY(const State::Ready ready, state_->make_ready(package));
    if (ready == State::Ready::code)
        return fail(ErrorCode::invalid, "package {} is not here whole", store->manifest().name);
    if (ready == State::Ready::yes) return {};
    state_->compile_changed.wait(lock, [&] { return package.compile != PackageCode::Compile::queued; });
    if (package.error) return tl::unexpected<Error>(*package.error);
    return {};
}

Result<LoadReport> CodeCache::load_interface(const std::shared_ptr<PackageStore>& store) {
    PackageCode* known = nullptr;
    {
        const std::lock_guard lock(state_->mutex);
        const auto found = state_->packages.find(store->digest());
        if (found == state_->packages.end())
            return fail(ErrorCode::invalid, "package {} is not known", store->manifest().name);
        known = found->second.get();
        known->running.fetch_add(1, std::memory_order_seq_cst);
    }
    const Entered held(nullptr, Ran::image, known);  // its code stays between loading and linking; left behind the lock
    ROVE_CHECK(load(store));
    State::Lock lock(state_->mutex);
    PackageCode& package = *known;
    if (package.interface) return LoadReport{};
    std::unordered_map<std::string, void*> names;
    for (const std::string& name : store->manifest().exports) {
        const auto exported = package.exported.find(name);
        void* address = exported != package.exported.end() ? exported->second
                        : package.module                   ? package.module->find(name)
                                                           : nullptr;
        if (address == nullptr)
            return fail(ErrorCode::failed, "interface {} defines no '{}' that it says it exports",
                        store->manifest().name, name);
        names[name] = address;
    }
    package.interface = true;  // never evicted: what links to it holds its addresses
    state_->interfaces.push_back(&package);
    LoadReport report{state_->symbols.add_interface(store->manifest().name, std::move(names))};
    state_->try_again();
    return report;
}

// There are more names than before: what could not be linked is linked again at its next call.
void CodeCache::State::try_again() {
    for (const auto& [digest, package] : packages) {
        if (!package->error || package->error->code() != ErrorCode::failed || package->constructed) continue;
        package->error.reset();
        package->compile = PackageCode::Compile::none;
    }
}

}  // namespace rove::code
