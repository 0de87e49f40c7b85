// Making code ready, and linking interfaces.
#include <utility>

#include "code/cache_state.hpp"

namespace rove::code {

namespace {

bool is_static(const wire::Symbol& symbol) {
    return symbol.kind == wire::Symbol::Kind::static_;
}

// What an image needs for its statics and their places: nothing where they were kept, or where there are none to keep.
std::size_t new_statics(const PackageCode& package, const wire::Image& image) REQUIRES(lock_of<CodeCache>) {
    if (package.data || image.data_bytes == 0) return 0;
    const auto places = std::count_if(image.symbols.begin(), image.symbols.end(), is_static);
    return image.data_bytes + static_cast<std::size_t>(places) * sizeof(PackageCode::StaticPlace);
}

std::vector<PackageCode::StaticPlace> places_of_statics(const wire::Image& image) {
    std::vector<PackageCode::StaticPlace> places;
    places.reserve(static_cast<std::size_t>(std::count_if(image.symbols.begin(), image.symbols.end(), is_static)));
    for (const wire::Symbol& each : image.symbols)
        if (is_static(each)) places.push_back({each.index, each.offset});
    return places;
}

}  // namespace

std::string CodeCache::State::why_no_form() const {
    if (options.forms == Forms::both)
        return fmt::format("it is not built for {0}; build it with --target {0}", host_triple());
    const bool takes_images = options.forms == Forms::image;
    return fmt::format(
        "it has no {0} for {1}, and the node takes {0} only (--forms {0}); {2}, or start the node with "
        "--forms both",
        takes_images ? "image" : "bitcode", host_triple(), takes_images ? "ship images" : "ship bitcode");
}

Result<std::optional<Awaited>> CodeCache::State::make_ready(PackageCode& package) {
    if (package.error && package.lacks_names && package.names_seen != symbols.generation()) {
        package.error.reset();  // what it lacks may be there now
        package.compile = PackageCode::Compile::none;
    }
    if (package.error) return tl::unexpected<Error>(*package.error);
    if (package.loading) return Awaited::loading;
    if (const std::optional<Error> refusal = package.take_refusal()) return tl::unexpected<Error>(*refusal);
    if (package.loaded()) {
        package.publish();  // an eviction that found it running may have cleared the targets meanwhile
        return std::nullopt;
    }
    // No image is loaded now, even if one has come: the compiler was told that there are no statics yet, and would make a second set.
    if (package.is_to_be_compiled()) return Awaited::loading;
    const bool image_fits =
        includes(options.forms, Forms::image) && package.store->slice_index(host_triple(), Forms::image).has_value();
    const bool bitcode_fits = includes(options.forms, Forms::bitcode) &&
                              package.store->slice_index(host_triple(), Forms::bitcode).has_value();
    if (!image_fits && !bitcode_fits)
        return fail(ErrorCode::unsupported, "package {} has no form that {} can run: {}",
                    package.store->manifest().name, options.node, why_no_form());
    package.lacks_names = false;
    if (image_fits && package.has_stored(Forms::image)) {
        const std::size_t slice = *package.store->slice_index(host_triple(), Forms::image);
        const Result<bool> loaded = is_quick(package, slice) ? load_in_place(package, slice) : Result<bool>(false);
        if (!loaded) {
            if (loaded.error().code() != ErrorCode::overloaded) package.error = loaded.error();  // others may make room
            return tl::unexpected<Error>(loaded.error());
        }
        if (!*loaded) {
            ROVE_CHECK(queue_load(package));
            return Awaited::loading;
        }
        if (options.forms == Forms::both && package.has_stored(Forms::bitcode))
            (void)queue_compile(package);  // where there is no thread for it, the image goes on
        return std::nullopt;
    }
    if (bitcode_fits && package.has_stored(Forms::bitcode)) {
        ROVE_CHECK(queue_compile(package));
        return Awaited::loading;
    }
    return Awaited::code;
}

bool CodeCache::State::is_quick(const PackageCode& package, std::size_t slice) const {
    const wire::Manifest& manifest = package.store->manifest();
    const bool names_wait = !manifest.imports.empty() && libraries.is_opening_any();
    const auto& image = manifest.slices[slice];
    // Both sizes: what is stored may be any number of frames that hold nothing, and each takes its time.
    return image.raw_bytes <= kQuickImageBytesMax && image.stored_bytes <= kQuickImageBytesMax &&
           manifest.imports.size() <= kQuickImportsMax && (manifest.dependencies.empty() || package.libraries_open) &&
           !names_wait;
}

// Where the image has what it says that it has.
Result<NewCode> CodeCache::State::link_image(PackageCode& package, const wire::Image& image,
                                             const std::shared_ptr<DataSegment>& data) {
    NewCode code;
    package.names_seen = symbols.generation();
    const std::vector<void*> addresses = lacking.find_imports(package, image, code.lacks);
    ROVE_CHECK(lacking.check(package, code.lacks));
    ROVE_TRY(code.image,
             LoadedImage::load(pool, image, data, [&addresses](std::size_t import) { return addresses[import]; }));
    const wire::Manifest& manifest = package.store->manifest();
    code.entries.resize(package.functions.size());
    for (const wire::Symbol& each : image.symbols) {
        void* address = code.image->address(each.segment, each.offset);
        if (each.kind == wire::Symbol::Kind::entry && each.index < package.functions.size() &&
            each.segment == wire::Segment::block)
            code.name_entry(package, each.index, address);
        else if (each.kind == wire::Symbol::Kind::exported && each.index < manifest.exports.size())
            code.exported[manifest.exports[each.index]] = address;
    }
    if (!data && image.data_bytes > 0) code.statics = places_of_statics(image);
    return code;
}

Result<bool> CodeCache::State::load_in_place(PackageCode& package, std::size_t slice) {
    ROVE_TRY(const wire::Image image, read_image(*package.store, slice));
    if (!package.constructed && image.init_array_count > 0) return false;
    const Budgets::GivesBack room{budgets, package};
    ROVE_CHECK(
        evictor.reserve(package, package.store->manifest().slices[slice].raw_bytes, new_statics(package, image)));
    ROVE_TRY(NewCode code, link_image(package, image, package.data));
    package.constructed = true;
    new_codes.take_image(package, image, std::move(code));
    return true;
}

Status CodeCache::State::queue_load(PackageCode& package) {
    ROVE_CHECK(workers.start(Duty::images));
    images_queue.push_back(&package);  // at most one entry a package
    package.loading = true;
    lock.notify_all();
    return {};
}

// On the worker for images.
void CodeCache::State::load_apart(PackageCode& package) {
    const Budgets::GivesBack room{budgets, package};
    Status loaded = lock.or_error(package, [&]() REQUIRES(lock_of<CodeCache>) { return load_image(package); });
    if (lock.has_stopped()) return;  // the cache may be gone
    package.loading = false;
    if (package.awaited_until.load(std::memory_order_relaxed) != 0) package.await();  // however long that took
    if (!loaded && loaded.error().code() == ErrorCode::overloaded)
        package.refuse(std::move(loaded.error()));
    else if (!loaded)
        package.error = std::move(loaded.error());
    else if (options.forms == Forms::both)  // where there is no thread or memory for it, the image goes on
        (void)lock.or_error(package, [&]() REQUIRES(lock_of<CodeCache>) { return queue_compile(package); });
}

// The lock is held only while shared state is looked at. The package cannot be evicted or forgotten meanwhile.
Status CodeCache::State::load_image(PackageCode& package) {
    const std::size_t slice = *package.store->slice_index(host_triple(), Forms::image);
    ROVE_TRY(const wire::Image image, lock.unlocked(package, [&]() -> Result<wire::Image> {
        package.names_seen = symbols.generation();
        libraries.open(package);
        return read_image(*package.store, slice);
    }));
    ROVE_CHECK(
        evictor.reserve(package, package.store->manifest().slices[slice].raw_bytes, new_statics(package, image)));
    const std::shared_ptr<DataSegment> data = package.data;
    ROVE_TRY(NewCode code, lock.unlocked(package, [&] { return link_image(package, image, data); }));
    if (!package.constructed && image.init_array_count > 0) {
        package.has_constructors = true;
        ROVE_CHECK(constructors.run(package, Duty::images, [&code] { code.image->construct(); }));
    }
    package.constructed = true;
    new_codes.take_image(package, image, std::move(code));
    return {};
}

Result<Running> CodeCache::State::hold(const PackageStore& store) {
    const LockOf held(lock.mutex());
    return known.hold(store);
}

Status CodeCache::load(const std::shared_ptr<PackageStore>& store) {
    ROVE_TRY(Running running, state_->hold(*store));
    PackageCode* const package = running.take_over();
    const Entered held(nullptr, RanAs::image, package);  // left after the lock
    const LockOf lock(state_->lock.mutex());
    for (;;) {
        ROVE_TRY(const std::optional<Awaited> awaited, state_->make_ready(*package));
        if (!awaited) return {};
        if (*awaited == Awaited::code)
            return fail(ErrorCode::invalid, "package {} is not here whole", store->manifest().name);
        while (!state_->lock.has_stopped() && package->is_under_way()) state_->lock.wait();
        if (package->is_under_way())
            return fail(ErrorCode::cancelled, "{} stopped before package {} was loaded", state_->options.node,
                        store->manifest().name);
    }
}

Result<LoadReport> CodeCache::load_interface(const std::shared_ptr<PackageStore>& store) {
    ROVE_TRY(Running running, state_->hold(*store));
    PackageCode* const package = running.take_over();
    const Entered held(nullptr, RanAs::image,
                       package);  // its code stays between loading and linking; left after the lock
    ROVE_CHECK(load(store));
    const LockOf lock(state_->lock.mutex());
    return state_->link_interface(*package);
}

// Of a package that is loaded and held.
Result<LoadReport> CodeCache::State::link_interface(PackageCode& package) {
    if (package.linked) return LoadReport{};
    const wire::Manifest& manifest = package.store->manifest();
    ROVE_CHECK(budgets.check_pinned(package, 0));
    ROVE_CHECK(evictor.check_stays(package, manifest.exports.size() * kInterfaceNameBytes));
    LoadReport report;
    NameMap<void*> names;
    for (const std::string& name : manifest.exports) {
        const auto exported = package.exported.find(name);
        void* address = exported != package.exported.end() ? exported->second
                        : package.module                   ? package.module->find(name)
                                                           : nullptr;
        if (address == nullptr)
            return fail(ErrorCode::failed, "interface {} defines no '{}' that it says it exports", manifest.name, name);
        names[name] = address;
    }
    // A peer must not replace what the node itself uses (rove_*, the C and C++ libraries) under other peers' functions.
    if (!package.resident) {
        const UnlockedOf free(lock.mutex());
        for (const std::string& name : manifest.exports) {
            if (!symbols.is_of_process(name)) continue;
            names.erase(name);
            report.kept.push_back(name);
        }
    }
    if (!package.interface) interfaces.push_back(&package);
    package.interface = true;  // never evicted: what links to it holds its addresses
    budgets.count(package);
    report.replaced = symbols.add_interface(manifest.name, std::move(names));
    package.linked = true;
    return report;
}

bool CodeCache::State::load_next_image() {
    if (images_queue.empty()) return false;
    PackageCode& package = *images_queue.front();
    images_queue.pop_front();
    const Digest digest = package.store->digest();
    workers.begin_work();
    load_apart(package);
    workers.end_work(digest);
    return true;
}

// A load stays queued while its package is being loaded or compiled anywhere.
bool CodeCache::State::load_next_asked() {
    const auto next = std::find_if(loads_queue.begin(), loads_queue.end(),
                                   [](const Load& load)
                                       REQUIRES(lock_of<CodeCache>) { return !load.running.package().is_under_way(); });
    if (next == loads_queue.end()) return false;
    Result<std::optional<Awaited>> awaited = lock.or_error(
        next->running.package(), [&]() REQUIRES(lock_of<CodeCache>) { return make_ready(next->running.package()); });
    if (awaited && *awaited == Awaited::loading) return true;  // now it is under way
    Load load = std::move(*next);
    PackageCode& package = load.running.package();
    loads_queue.erase(next);
    workers.begin_work();
    const Result<LoadReport> loaded = lock.or_error(package, [&]() REQUIRES(lock_of<CodeCache>) -> Result<LoadReport> {
        const wire::Manifest& manifest = package.store->manifest();
        if (!awaited) return tl::unexpected<Error>(std::move(awaited.error()));
        if (*awaited == Awaited::code) return fail(ErrorCode::invalid, "package {} is not here whole", manifest.name);
        return manifest.interface ? link_interface(package) : LoadReport{};
    });
    const Digest digest = package.store->digest();
    {
        const Running over = std::move(load.running);
    }
    workers.end_work(digest);
    const Result<LoadReport> without_memory = tl::unexpected<Error>(no_memory());
    const auto tell = [&](const Result<LoadReport>& answer) {
        try {
            load.done(answer);
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    };
    lock.call_back([&] { (void)(tell(loaded) || tell(without_memory)); });  // an error takes less
    return true;
}

Status CodeCache::load_later(const std::shared_ptr<PackageStore>& package,
                             std::function<void(const Result<LoadReport>&)> done) {
    const LockOf lock(state_->lock.mutex());
    if (state_->loads_queue.size() >= kLoadsMax)
        return fail(ErrorCode::overloaded,
                    "{} packages wait to be loaded on {} already, the most there may; load {} later", kLoadsMax,
                    state_->options.node, package->manifest().name);
    const auto of_this = std::count_if(state_->loads_queue.begin(), state_->loads_queue.end(), [&](const auto& load) {
        return load.running.package().store->digest() == package->digest();
    });
    if (static_cast<std::size_t>(of_this) >= kLoadsOfPackageMax)
        return fail(ErrorCode::overloaded,
                    "{} loads of package {} wait on {} already, the most that may; load it later", of_this,
                    package->manifest().name, state_->options.node);
    ROVE_CHECK(state_->workers.start(Duty::images));
    ROVE_TRY(Running running, state_->known.hold(*package));
    state_->loads_queue.push_back({std::move(running), std::move(done)});
    state_->lock.notify_all();
    return {};
}

}  // namespace rove::code
