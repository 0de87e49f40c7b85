#include "code/image_loads.hpp"

#include <algorithm>
#include <utility>

#include "base/transient.hpp"

namespace rove::code {

namespace {

bool is_static(const wire::Symbol& symbol) {
    return symbol.kind == wire::Symbol::Kind::static_;
}

// The bytes that an image needs for its statics and their places: 0 if they were kept, or if it has none.
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

Result<bool> ImageLoads::load_if_quick(PackageCode& package, std::size_t slice) {
    if (!is_quick(package, slice)) return false;
    Result<bool> loaded = load_in_place(package, slice);
    if (!loaded || !*loaded) package.give_up_linking();
    return loaded;
}

bool ImageLoads::is_quick(const PackageCode& package, std::size_t slice) const {
    const wire::Manifest& manifest = package.store->manifest();
    const bool names_wait = !manifest.imports.empty() && dependencies_.is_opening_any();
    const auto& image = manifest.slices[slice];
    // Both sizes are checked: the stored bytes may be any number of frames without content, and each takes time.
    return image.raw_bytes <= kQuickImageBytesMax && image.stored_bytes <= kQuickImageBytesMax &&
           manifest.imports.size() <= kQuickImportsMax && (manifest.dependencies.empty() || package.libraries_open) &&
           !names_wait;
}

// Links the image: its imports, and the addresses of its symbols.
Result<NewCode> ImageLoads::link_image(PackageCode& package, const wire::Image& image,
                                       const std::shared_ptr<DataSegment>& data) {
    NewCode code;
    package.names_seen = symbols_.generation();
    const std::vector<void*> addresses = lacking_.find_imports(package, image, code.lacks);
    ROVE_CHECK(lacking_.check(package, code.lacks));
    ROVE_TRY(code.image,
             LoadedImage::load(pool_, image, data, [&addresses](std::size_t import) { return addresses[import]; }));
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

Result<bool> ImageLoads::load_in_place(PackageCode& package, std::size_t slice) {
    ROVE_TRY(const wire::Image image, read_image(*package.store, slice));
    if (!package.constructed && image.init_array_count > 0) return false;
    const Budgets::GivesBack room{budgets_, package};
    ROVE_CHECK(
        evictor_.reserve(package, package.store->manifest().slices[slice].raw_bytes, new_statics(package, image)));
    package.begin_to_link(symbols_.generation());
    ROVE_TRY(NewCode code, link_image(package, image, package.data));
    package.constructed = true;
    new_codes_.take_image(package, image, std::move(code));
    return true;
}

Status ImageLoads::queue(PackageCode& package) {
    ROVE_CHECK(workers_.start(Duty::images));
    queue_.push_back(&package);
    package.loading = true;
    lock_.notify_all();
    return {};
}

bool ImageLoads::do_next() {
    if (queue_.empty()) return false;
    PackageCode& package = *queue_.front();
    queue_.pop_front();
    const Digest digest = package.store->digest();
    workers_.begin_work();
    load_apart(package);
    workers_.end_work(digest);
    return true;
}

// Runs on the worker for images.
void ImageLoads::load_apart(PackageCode& package) {
    const Budgets::GivesBack room{budgets_, package};
    Status loaded = lock_.or_error(package, [&]() REQUIRES(lock_of<CodeCache>) { return load_image(package); });
    if (lock_.has_stopped()) return;  // the cache may be destroyed
    package.loading = false;
    if (!loaded) package.give_up_linking();
    if (package.awaited_until.load(std::memory_order_relaxed) != 0) package.await();  // however long that took
    if (!loaded && is_transient(loaded.error()))
        package.refuse(std::move(loaded.error()));
    else if (!loaded)
        package.error = std::move(loaded.error());
    else if (options_.forms == Forms::both)  // if there is no thread or memory for it, the image keeps running
        (void)lock_.or_error(package, [&]() REQUIRES(lock_of<CodeCache>) { return compiles_.queue(package); });
}

// The lock is held only while shared state is read or written. The package cannot be evicted or forgotten in between.
Status ImageLoads::load_image(PackageCode& package) {
    const std::size_t slice = *package.store->slice_index(host_triple(), Forms::image);
    ROVE_TRY(const wire::Image image, lock_.unlocked(package, [&]() -> Result<wire::Image> {
        package.names_seen = symbols_.generation();
        dependencies_.open(package);
        return read_image(*package.store, slice);
    }));
    ROVE_CHECK(
        evictor_.reserve(package, package.store->manifest().slices[slice].raw_bytes, new_statics(package, image)));
    const std::shared_ptr<DataSegment> data = package.data;
    package.begin_to_link(symbols_.generation());
    ROVE_TRY(NewCode code, lock_.unlocked(package, [&] { return link_image(package, image, data); }));
    if (!package.constructed && image.init_array_count > 0) {
        package.has_constructors = true;
        ROVE_CHECK(evictor_.make_room_to_stay(package, 0));
        Status constructed = constructors_.run(package, Duty::images, [&code] { code.image->construct(); });
        if (!constructed) {
            if (!lock_.has_stopped() && !is_transient(constructed.error())) new_codes_.leave(package, std::move(code));
            return constructed;
        }
    }
    package.constructed = true;
    new_codes_.take_image(package, image, std::move(code));
    return {};
}

}  // namespace rove::code
