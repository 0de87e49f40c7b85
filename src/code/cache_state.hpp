// The inside of a CodeCache; see cache.hpp for what it promises.
#pragma once

#include <deque>
#include <span>

#include "code/admission.hpp"
#include "code/constructors.hpp"
#include "code/lacking.hpp"
#include "code/libraries.hpp"
#include "code/new_code.hpp"

namespace rove::code {

// What is loaded in place, under the node's lock: an image of this many bytes at most, as it is stored and once it is decompressed,
// with this many imports, without libraries to be opened and without constructors to be run. To decompress, copy and relocate it takes a tenth of a
// millisecond, and to look its imports up, at a microsecond each, a quarter. Everything else is for the worker that loads.
inline constexpr std::size_t kQuickImageBytesMax = 64 * 1024;
inline constexpr std::size_t kQuickImportsMax = 256;
struct CodeCache::State : std::enable_shared_from_this<CodeCache::State> {
    State(CodeCache& owner, CodeOptions given)
        : cache(owner), options(std::move(given)), symbols(options.host_symbols) {}

    // ---- known packages (cache.cpp)
    void end_packages() NO_THREAD_SAFETY_ANALYSIS;
    [[nodiscard]] bool awaits_threads() const;

    // ---- loading (loading.cpp)
    [[nodiscard]] Result<Running> hold(const PackageStore& store);
    // Nothing: it is ready.
    [[nodiscard]] Result<std::optional<Awaited>> make_ready(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] std::string why_no_form() const;
    [[nodiscard]] bool is_quick(const PackageCode& package, std::size_t slice) const;
    // False: it has constructors.
    [[nodiscard]] Result<bool> load_in_place(PackageCode& package, std::size_t slice) REQUIRES(lock_of<CodeCache>);
    // What a package has while its bitcode is compiled: nothing of it is replaced meanwhile.
    struct Loaded {
        std::shared_ptr<DataSegment> data;
        std::span<const PackageCode::StaticPlace> statics;
        const LoadedImage* image;  // null: none
    };
    [[nodiscard]] Result<jit::NamesInImage> names_in_image(const PackageCode& package, const Loaded& loaded) const;
    [[nodiscard]] Result<NewCode> link_image(PackageCode& package, const wire::Image& image,
                                             const std::shared_ptr<DataSegment>& data);
    [[nodiscard]] Status queue_load(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    void load_apart(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Status load_image(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Result<LoadReport> link_interface(PackageCode& package) REQUIRES(lock_of<CodeCache>);

    // ---- a worker's next piece of work. False: there is nothing to do
    [[nodiscard]] bool do_next(Duty duty) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] bool load_next_image() REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] bool load_next_asked() REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] bool compile_next() REQUIRES(lock_of<CodeCache>);
    struct Load {
        Running running;  // until it is linked
        std::function<void(const Result<LoadReport>&)> done;
    };

    // ---- compiling (compiling.cpp)
    [[nodiscard]] Status queue_compile(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    void compile_one(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] Result<NewCode> compile(PackageCode& package) REQUIRES(lock_of<CodeCache>);
    void warm_compiler() const;
    [[nodiscard]] Result<jit::Engine*> engine() const { return options.engine ? options.engine() : jit::engine(); }

    CodeCache& cache;
    const CodeOptions options;
    Symbols symbols;
    std::shared_ptr<State> itself;  // where code stays after its cache …
    State* left_before = nullptr;   // … as that of this one, an earlier one's
    CodePool pool;                  // outlives the packages below
    CacheLock lock{options.node};
    // Of warm_up; kept, because its page would be cold again.
    std::unique_ptr<LoadedImage> warm_image GUARDED_BY(lock_of<CodeCache>);
    Known known;
    Uses uses;
    Candidates candidates;
    Budgets budgets{options, candidates, uses};
    CompileQueue compile_queue;
    Evictor evictor{
        {.known = known, .budgets = budgets, .candidates = candidates, .uses = uses, .compile_queue = compile_queue}};
    Admission admission{{.cache = cache,
                         .options = options,
                         .known = known,
                         .budgets = budgets,
                         .candidates = candidates,
                         .uses = uses,
                         .evictor = evictor}};

    Workers workers{{.lock = lock,
                     .options = options,
                     .evictor = evictor,
                     .all = [this] { return shared_from_this(); },
                     .do_next = [this](Duty duty) REQUIRES(lock_of<CodeCache>) { return do_next(duty); }}};
    Constructors constructors{lock, options.node, workers};
    Lacking lacking{options.node, symbols};
    Libraries libraries;
    NewCodes new_codes{known, budgets, uses};
    std::vector<PackageCode*> interfaces GUARDED_BY(lock_of<CodeCache>);  // in the order in which they were loaded
    std::deque<PackageCode*> images_queue GUARDED_BY(lock_of<CodeCache>);
    std::deque<Load> loads_queue GUARDED_BY(lock_of<CodeCache>);
};

}  // namespace rove::code
