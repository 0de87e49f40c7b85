// The inside of a CodeCache, made of its parts; see cache.hpp for its interface.
//
//     Known         packages and functions, by digest, name, id, handle, address     known.hpp
//     Admission     makes packages known, and forgets others to make room            admission.hpp
//     Uses          what runs, and when each package was used                        uses.hpp
//     Leaders       the engines: what each runs, and no longer uses                  leaders.hpp
//     Budgets       what is held, and whether more fits                              budgets.hpp
//     Candidates    what may be evicted, in the order of last use                    candidates.hpp
//     Evictor       takes code away                                                  evictor.hpp
//     Tiers         makes a package ready, in one of its forms                       tiers.hpp
//     ImageLoads    loads images, in place or by the worker                          image_loads.hpp
//     Compiles      compiles bitcode, in the background                              compiles.hpp
//     NewCodes      makes what was loaded or compiled the package's code             new_code.hpp
//     Lacking       names that are nowhere on this node                              lacking.hpp
//     Dependencies  opens what packages depend on                                    dependencies.hpp
//     Workers       the threads                                                      workers.hpp
//     Constructors  runs those of packages                                           constructors.hpp
//     Interfaces    packages to whose names others are linked                        interfaces.hpp
//     Loads         packages that are to be loaded ahead of their calls              loads.hpp
//
// Threads: the parts share one lock, CacheLock's, and say what is called without it. Each is given references to those that it uses
// (`Beside`), so that a test can make it alone.
//
// Invariants: a State lives for as long as its cache or any worker of it, whichever ends last.
#pragma once

#include "code/admission.hpp"
#include "code/image_loads.hpp"
#include "code/interfaces.hpp"
#include "code/loads.hpp"
#include "code/tiers.hpp"

namespace rove::code {

struct CodeCache::State : std::enable_shared_from_this<CodeCache::State> {
    State(CodeCache& owner, CodeOptions given) : cache(owner), options(std::move(given)) {}

    // Runs destructors before any code is released, and without the lock, because they may call the node; packages no longer change then.
    // False: some statics are kept, because threads may use them, and so this State must be kept.
    [[nodiscard]] bool end_packages() NO_THREAD_SAFETY_ANALYSIS;
    void end_objects_of(pid_t thread) NO_THREAD_SAFETY_ANALYSIS;  // thread-local objects
    // Whether threads of the program may have thread-local objects of a package, whose destructors are in its code.
    [[nodiscard]] bool awaits_threads() const EXCLUDES(lock_of<CodeCache>);
    [[nodiscard]] Result<Running> hold(const PackageStore& store) const EXCLUDES(lock_of<CodeCache>) {
        const LockOf held(lock.mutex());
        return known.hold(store);
    }
    // Does a duty's next piece of work, on its worker. False: there is none.
    [[nodiscard]] bool do_next(Duty duty) REQUIRES(lock_of<CodeCache>);
    [[nodiscard]] bool is_idle() const REQUIRES(lock_of<CodeCache>);

    CodeCache& cache;
    const CodeOptions options;
    Symbols symbols{options.host_symbols};
    std::shared_ptr<State> itself;  // set if the code outlives its cache …
    State* left_before = nullptr;   // … then the State of an earlier such cache
    CodePool pool;                  // outlives the packages below
    CacheLock lock{options.node};
    // The image that warm_up loaded; kept, because the page of a new one would not be in memory yet.
    std::unique_ptr<LoadedImage> warm_image GUARDED_BY(lock_of<CodeCache>);

    Known known;
    Uses uses;
    Candidates candidates;
    Budgets budgets{options, candidates, uses};
    CompileQueue compile_queue;
    Evictor evictor{{.lock = lock,
                     .known = known,
                     .budgets = budgets,
                     .candidates = candidates,
                     .uses = uses,
                     .compile_queue = compile_queue}};
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
    Dependencies dependencies;
    NewCodes new_codes{known, budgets, uses};
    Compiles compiles{{.lock = lock,
                       .options = options,
                       .symbols = symbols,
                       .budgets = budgets,
                       .evictor = evictor,
                       .queue = compile_queue,
                       .dependencies = dependencies,
                       .lacking = lacking,
                       .new_codes = new_codes,
                       .workers = workers,
                       .constructors = constructors}};
    ImageLoads images{{.lock = lock,
                       .options = options,
                       .symbols = symbols,
                       .pool = pool,
                       .budgets = budgets,
                       .evictor = evictor,
                       .dependencies = dependencies,
                       .lacking = lacking,
                       .new_codes = new_codes,
                       .workers = workers,
                       .constructors = constructors,
                       .compiles = compiles}};
    Tiers tiers{options, symbols, images, compiles};
    Interfaces interfaces{lock, symbols, budgets, evictor};
    Loads loads{{.lock = lock,
                 .options = options,
                 .known = known,
                 .tiers = tiers,
                 .interfaces = interfaces,
                 .workers = workers}};
};

}  // namespace rove::code
