#include "code/compiles.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/transient.hpp"

namespace rove::code {

namespace {

// Memory that LLVM has freed is unsorted in the C library's heap, which all threads of rove node share. The next thread that allocates
// would sort it, and that is often the leader, in a first call: 3 to 20 us of its 30 to 100. So it is sorted here, where no call waits.
void sort_freed_memory() {
    constexpr std::size_t kBeyondSmallBins = 64 << 10;  // and less than the sizes that get a mapping of their own
    void* volatile block = std::malloc(kBeyondSmallBins);
    std::free(block);
}

}  // namespace

Status Compiles::queue(PackageCode& package) {
    if (package.compile != PackageCode::Compile::none || !includes(options_.forms, Forms::bitcode) ||
        !package.has_stored(Forms::bitcode))
        return {};
    ROVE_CHECK(workers_.start(Duty::bitcode));
    queue_.push(package);
    lock_.notify_all();
    return {};
}

bool Compiles::do_next() {
    // A call may still wait for such a package, if the node has slept since the call was last checked: then the package is queued again.
    while (const std::optional<Digest> left = queue_.leave_in_vain())
        if (options_.on_ready) lock_.call_back([&] { options_.on_ready(*left); });
    if (queue_.empty()) {
        if (!queue_.take_evicted()) return false;
        workers_.begin_work();
        {
            const Unlocked free(lock_.mutex());
            if (used() != nullptr) used()->free_modules();
        }
        workers_.end_work();
        return true;
    }
    PackageCode& package = queue_.begin();
    const Digest digest = package.store->digest();
    workers_.begin_work();
    compile_one(package);
    workers_.end_work(digest);
    const Unlocked free(lock_.mutex());
    sort_freed_memory();
    return true;
}

void Compiles::warm_up() const {
    try {
        if (const Result<bitcode::Compiler*> opened = compiler()) (*opened)->warm_up();
    } catch (const std::exception&) {  // the error occurs again when the code is needed
    }
}

// The addresses of the names by which the bitcode binds to code that was loaded before it: its statics, and the image's other names. An
// image stays loaded during the compile; if there is none, no image is loaded before the compile ends.
Result<bitcode::NamesInImage> Compiles::names_in_image(const PackageCode& package, const Loaded& loaded) {
    bitcode::NamesInImage names;
    for (const auto& [number, offset] : loaded.statics)
        names[fmt::format("{}{}", wire::kStaticPrefix, number)] = loaded.data->start() + offset;
    if (loaded.image == nullptr) return names;
    const wire::Manifest& manifest = package.store->manifest();
    ROVE_TRY(const wire::Image image,
             read_image(*package.store, *package.store->slice_index(host_triple(), Forms::image)));
    for (const wire::Symbol& each : image.symbols) {
        void* address = loaded.image->address(each.segment, each.offset);
        if (each.kind == wire::Symbol::Kind::anchor)
            names[fmt::format("{}{}", wire::kAnchorPrefix, each.index)] = address;
        else if (each.kind == wire::Symbol::Kind::static_)
            names[fmt::format("{}{}", wire::kStaticPrefix, each.index)] = address;
        else if (each.kind == wire::Symbol::Kind::entry && each.index < manifest.entries.size())
            names[manifest.entries[each.index]] = address;
        else if (each.kind == wire::Symbol::Kind::exported && each.index < manifest.exports.size())
            names[manifest.exports[each.index]] = address;
    }
    return names;
}

// Compiles without the lock; the package cannot be evicted or forgotten in that time.
Result<NewCode> Compiles::compile(PackageCode& package) {
    bool lacks_names = false;
    const wire::Manifest& manifest = package.store->manifest();
    package.begin_to_link(symbols_.generation());
    Lacks lacks;
    Lacking::lack_of_cpu(lacks, manifest);
    ROVE_CHECK(lacking_.check(package, lacks));
    const Loaded loaded{.data = package.data, .statics = package.statics, .image = package.image.get()};
    Result<NewCode> code = lock_.unlocked(package, [&]() -> Result<NewCode> {
        NewCode made;
        made.lacks = std::move(lacks);
        package.names_seen = symbols_.generation();
        dependencies_.open(package);
        ROVE_TRY(const ByteBuffer bitcode,
                 package.store->raw_slice(*package.store->slice_index(host_triple(), Forms::bitcode)));
        ROVE_TRY(bitcode::NamesInImage names, names_in_image(package, loaded));
        ROVE_TRY(bitcode::Compiler * opened, compiler());
        used_ = opened;
        ROVE_TRY(made.module, opened->compile({.name = package.functions.size() == 1 ? package.functions.front()->name
                                                                                     : package.store->manifest().name,
                                               .remedy = Lacking::remedy(package),
                                               .bitcode = bitcode,
                                               .resolve = [&](std::string_view name) -> void* {
                                                   return symbols_.resolve(std::string(name), package.scope);
                                               },
                                               .may_lack =
                                                   [&](std::string_view name) {
                                                       const auto known = std::find(manifest.imports.begin(),
                                                                                    manifest.imports.end(), name);
                                                       const auto import =
                                                           static_cast<std::size_t>(known - manifest.imports.begin());
                                                       const bool may = known != manifest.imports.end() &&
                                                                        !manifest.whole_needs(import);
                                                       if (may) Lacking::lack(made.lacks, manifest, import);
                                                       lacks_names = lacks_names || !may;
                                                       return may;
                                                   },
                                               .in_image = std::move(names)}));
        made.entries.resize(package.functions.size());
        for (std::size_t i = 0; i < package.functions.size(); ++i)
            if (void* address = made.module->find(manifest.entries[i])) made.name_entry(package, i, address);
        return made;
    });
    if (lock_.has_stopped()) return code;
    if (!code) {
        package.lacks_names = package.lacks_names || lacks_names;
        return tl::unexpected<Error>(
            Error(code.error().code(), fmt::format("{} (on {})", code.error().message(), options_.node)));
    }
    // The compiled module may hold statics, which would be lost with it.
    const bool was_pinned = std::exchange(package.pinned, package.pinned || code->module->has_own_statics());
    Status reserved = lock_.or_error(package, [&]() REQUIRES(lock_of<CodeCache>) {
        return evictor_.reserve(package, code->module->code_bytes(), 0);
    });
    if (reserved) return code;
    package.pinned = was_pinned;  // unchanged: it keeps its image, or has no code
    return tl::unexpected<Error>(std::move(reserved.error()));
}

// Runs on the worker for bitcode.
void Compiles::compile_one(PackageCode& package) {
    const Budgets::GivesBack room{budgets_, package};
    Result<NewCode> code = lock_.or_error(package, [&]() REQUIRES(lock_of<CodeCache>) { return compile(package); });
    if (lock_.has_stopped()) return;  // the cache may be destroyed
    Status done = lock_.or_error(package, [&]() REQUIRES(lock_of<CodeCache>) -> Status {
        if (!code) return tl::unexpected<Error>(std::move(code.error()));
        if (package.constructed) return {};
        package.has_constructors = code->module->has_constructors();
        if (package.has_constructors) {
            ROVE_CHECK(evictor_.make_room_to_stay(package, 0));
            ROVE_CHECK(constructors_.run(package, Duty::bitcode, [&code] { code->module->run_constructors(); }));
        }
        package.constructed = true;
        return {};
    });
    if (lock_.has_stopped()) return;
    if (package.awaited_until.load(std::memory_order_relaxed) != 0) package.await();  // however long that took
    if (!done) {
        package.give_up_linking();
        const bool transient = is_transient(done.error());
        if (code && !transient) new_codes_.leave(package, std::move(*code));
        package.compile = transient ? PackageCode::Compile::none : PackageCode::Compile::failed;
        // An image keeps running, or runs from now on if it has arrived in that time. Without an image the calls fail.
        const bool image_follows = !code && includes(options_.forms, Forms::image) && package.has_stored(Forms::image);
        if (package.image || image_follows) return;
        if (transient)
            package.refuse(std::move(done.error()));
        else
            package.error = std::move(done.error());
        return;
    }
    new_codes_.take_module(package, std::move(*code));
    if (package.module_lacks.empty()) return;
    // Interfaces may have added names during the compile. The image has them already; a function keeps running as an image if this fails.
    for (const auto& function : package.functions) {
        function->names_seen = 0;
        (void)lock_.or_error(package, [&]() REQUIRES(lock_of<CodeCache>) { return lacking_.put_names(*function); });
    }
}

}  // namespace rove::code
