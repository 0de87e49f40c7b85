// One package in a cache: its bytes, its functions, and, while it is loaded, its code.
//
// Threads: under the lock of the cache. Members without GUARDED_BY are set before the package becomes known, are atomic, or have their own lock.
//
// Invariants: at most one worker loads or compiles it at a time. Its functions exist until it is forgotten, whether their code is loaded or
// not. Constructors run at most once. Statics that were used, or whose constructors ran, are kept over evictions.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/name_map.hpp"
#include "bitcode/compiled.hpp"
#include "code/cache.hpp"
#include "code/loader.hpp"
#include "code/symbols.hpp"

namespace rove::code {

// How long a package whose call could not run yet is kept for it. The call tries again whenever something has changed; its own limit is
// shorter (kCodeWaitMax), so this bound matters only for calls that their callers have abandoned.
inline constexpr auto kAwaitedMax = std::chrono::seconds(10);
// Code for which calls wait may exceed the budget by up to this many bytes in all, so that a small budget serves many callers. Beyond that
// the code that was used longest ago is evicted, and requested again.
inline constexpr std::size_t kAwaitedBytesMax = 2 * wire::kSliceBytesMax;
// No call waits for constructors that have run longer than this: later calls fail at once.
inline constexpr auto kConstructingAwaitedMax = std::chrono::seconds(60);
// How long a refusal is kept for the call that waits for it; a later call tries again.
inline constexpr auto kRefusalMax = std::chrono::seconds(1);

// Which imports code lacks, a bit each as in a row of Manifest::needs; empty: none.
using Lacks = ByteBuffer;

class PackageCode;

// Counts a package as running: its code stays until this is destroyed, or until an Entered has taken it over.
class Running {
public:
    // Partner: Evictor::evict.
    explicit Running(PackageCode& package);
    Running(Running&& other) noexcept : package_(std::exchange(other.package_, nullptr)) {}
    Running& operator=(Running&& other) noexcept {
        std::swap(package_, other.package_);
        return *this;
    }
    ~Running();
    [[nodiscard]] PackageCode& package() const { return *package_; }
    [[nodiscard]] PackageCode* take_over() { return std::exchange(package_, nullptr); }

private:
    PackageCode* package_;
};

// The share of CodeOptions::code_bytes_max to which a package's code counts.
enum class Budget : std::uint8_t { evictable, pinned, resident };
inline constexpr std::size_t kBudgets = 3;

// A package's place in a RecencyList, which exists whether the package is listed there or not.
struct Listing {
    using Key = std::pair<std::uint64_t, std::uint64_t>;  // last use; if equal, the package that was known first
    using Order = std::map<Key, PackageCode*>;
    explicit Listing(PackageCode& package) {
        Order made;
        made.emplace(Key{}, &package);
        place = made.extract(made.begin());
    }
    [[nodiscard]] bool is_listed() const REQUIRES(lock_of<CodeCache>) { return place.empty(); }
    Order::node_type place GUARDED_BY(lock_of<CodeCache>);  // set while it is not listed
    Order::iterator at GUARDED_BY(lock_of<CodeCache>);      // set while it is listed
};

class PackageCode {
public:
    enum class Compile : std::uint8_t { none, queued, begun, done, failed };

    PackageCode(CodeCache& owner, std::shared_ptr<PackageStore> bytes) : cache(owner), store(std::move(bytes)) {}
    PackageCode(const PackageCode&) = delete;

    // Whether its code in that form for this machine is stored here.
    [[nodiscard]] bool has_stored(Forms form) const;
    // Gives every function the best code that lacks nothing the function needs.
    void publish() noexcept REQUIRES(lock_of<CodeCache>);
    // Precondition: no thread runs it, and nothing points to its entries any more (Known::take_back_entries).
    void release_code() noexcept REQUIRES(lock_of<CodeCache>);
    // Runs the destructors of its statics, while the code still exists. Once; no code of it may run afterwards. When the cache has stopped:
    // without its lock, because the destructors may call functions of the node that take it. False: threads have objects that may refer to the
    // statics, which are kept until the process ends, and the code with them.
    [[nodiscard]] bool end() NO_THREAD_SAFETY_ANALYSIS;

    [[nodiscard]] bool loaded() const REQUIRES(lock_of<CodeCache>) { return image || module; }
    // Whether a worker has it, or will have: threads that need its code wait.
    [[nodiscard]] bool is_under_way() const REQUIRES(lock_of<CodeCache>) {
        return loading || (!loaded() && is_to_be_compiled());
    }
    [[nodiscard]] bool is_to_be_compiled() const REQUIRES(lock_of<CodeCache>) {
        return compile == Compile::queued || compile == Compile::begun;
    }
    // Whether it is queued for the compiler, has no other code, and the calls that asked for it have ended or their callers have left. No
    // request to load it exists either, because that would hold it.
    [[nodiscard]] bool waits_in_vain() const REQUIRES(lock_of<CodeCache>) {
        return compile == Compile::queued && !loaded() && !awaited() && running.load(std::memory_order_relaxed) == 0;
    }
    // begin_to_link() is called before its imports are looked up, the second one if nothing was loaded afterwards.
    void begin_to_link(std::uint64_t generation) REQUIRES(lock_of<CodeCache>) {
        names_seen = generation;
        if (scope.as_of == 0) scope.as_of = generation;
    }
    void give_up_linking() REQUIRES(lock_of<CodeCache>) {
        if (!loaded()) scope.as_of = 0;
    }
    void refuse(Error why) REQUIRES(lock_of<CodeCache>) { refusal = Refusal{std::move(why), Clock::now()}; }
    // Returns it to one call only.
    [[nodiscard]] std::optional<Error> take_refusal() REQUIRES(lock_of<CodeCache>) {
        const std::optional<Refusal> taken = std::exchange(refusal, std::nullopt);
        if (!taken || Clock::now() - taken->at > kRefusalMax) return std::nullopt;
        return taken->why;
    }
    // The bytes of loaded code; the store counts the package's own bytes.
    [[nodiscard]] std::size_t loaded_bytes() const REQUIRES(lock_of<CodeCache>) {
        std::size_t bytes = 0;
        for (const auto* each : {&image, &left_image}) bytes += *each ? (*each)->code_bytes() : 0;
        for (const auto* each : {&module, &left_module}) bytes += *each ? (*each)->code_bytes() : 0;
        return bytes;
    }
    // The bytes that the cache has counted, and the share to which they count. Slices can be dropped while code made of them is loaded, so
    // they are never pinned.
    struct Counted {
        std::size_t manifest = 0, slices = 0, code = 0;
        Budget budget = Budget::evictable;  // the code's budget
        bool stays = false;                 // for as long as the node lives
        std::size_t functions = 0;
        [[nodiscard]] Budget of_slices() const { return budget == Budget::resident ? budget : Budget::evictable; }
    };
    Counted counted GUARDED_BY(lock_of<CodeCache>);
    // Bytes reserved for parts that are being loaded: code, if it is pinned, and statics.
    struct Reserved {
        std::size_t code = 0, statics = 0;
    };
    Reserved reserved GUARDED_BY(lock_of<CodeCache>);
    [[nodiscard]] Budget budget() const REQUIRES(lock_of<CodeCache>) {
        if (resident) return Budget::resident;
        const bool is_kept = (pinned && loaded()) || left_image || left_module;
        return interface || reserved.code > 0 || is_kept ? Budget::pinned : Budget::evictable;
    }
    // Whether a call waits for it to become ready: then it is not evicted.
    [[nodiscard]] bool awaited() const {
        const std::int64_t until = awaited_until.load(std::memory_order_relaxed);
        return until != 0 && Clock::now().time_since_epoch().count() < until;
    }
    void await() {
        awaited_until.store((Clock::now() + kAwaitedMax).time_since_epoch().count(), std::memory_order_relaxed);
    }
    // Whether the image has all that a function needs. The bitcode may call functions of the image, by their addresses
    // (bitcode/anchors.hpp).
    [[nodiscard]] bool image_runs(const Function& function) const REQUIRES(lock_of<CodeCache>) {
        return function.image != nullptr && !store->manifest().entry_needs_any(function.entry, image_lacks);
    }
    [[nodiscard]] bool module_runs(const Function& function) const REQUIRES(lock_of<CodeCache>) {
        const wire::Manifest& manifest = store->manifest();
        return function.compiled != nullptr && !manifest.entry_needs_any(function.entry, image_lacks) &&
               !manifest.entry_needs_any(function.entry, module_lacks);
    }
    // Whether the package stays known until the node ends: its code is pinned, it has statics, or its constructors have run.
    [[nodiscard]] bool stays() const REQUIRES(lock_of<CodeCache>) {
        return !resident && (budget() == Budget::pinned || data || ran_constructors());
    }
    // Whether constructors have run: they may have changed the process, so they must not run again.
    [[nodiscard]] bool ran_constructors() const REQUIRES(lock_of<CodeCache>) { return constructed && has_constructors; }
    // The bytes that are kept over evictions.
    [[nodiscard]] std::size_t static_bytes() const REQUIRES(lock_of<CodeCache>) {
        return data ? data->bytes() + statics.size() * sizeof(StaticPlace) : 0;
    }
    // Whether its statics must be kept: they were used, or constructors may have passed their addresses to others.
    [[nodiscard]] bool keeps_statics() const REQUIRES(lock_of<CodeCache>) {
        return data && (called || has_constructors);
    }

    CodeCache& cache;
    const std::shared_ptr<PackageStore> store;
    // The node whose turn of the compiler it takes: one that waits for it, otherwise the one that sent it first.
    NodeId compiled_for GUARDED_BY(lock_of<CodeCache>) = kNoNode;
    std::uint64_t compile_turn GUARDED_BY(lock_of<CodeCache>) = 0;  // CompileQueue's
    std::vector<std::unique_ptr<Function>> functions;
    bool resident GUARDED_BY(lock_of<CodeCache>) = false;
    bool interface GUARDED_BY(lock_of<CodeCache>) = false;  // loaded as one: other code links to it
    bool linked GUARDED_BY(lock_of<CodeCache>) = false;     // code is linked to all of its names
    bool pinned GUARDED_BY(lock_of<CodeCache>) = false;
    std::uint64_t number = 0;                    // counts the packages in the order in which they became known
    std::atomic<bool> called{false};             // ever
    std::atomic<std::int64_t> awaited_until{0};  // on the steady clock; 0: no call waits
    std::uint64_t forgotten GUARDED_BY(lock_of<CodeCache>) =
        0;  // set by Leaders: counts forgotten packages; 0: it is known
    std::unique_ptr<PackageCode> forgotten_next GUARDED_BY(lock_of<CodeCache>);  // the one that was forgotten after it
    std::optional<Error> error GUARDED_BY(lock_of<CodeCache>);                   // why it cannot run here
    std::atomic<bool> lacks_names{false};  // because names are missing: an interface may add them
    // The generation of names (Symbols::generation) before they were looked up.
    std::atomic<std::uint64_t> names_seen{0};

    // Eviction and entry are synchronised by `running` and the functions' targets: a thread that enters counts itself first and then reads
    // the target; a thread that evicts clears the targets first and then reads the count; both in one total order (seq_cst), so one of them
    // sees the other.
    std::atomic<int> running{0};
    std::atomic<std::uint64_t> last_used{0};
    Listing with_slices{*this}, evictable{*this}, idle{*this},
        forgettable{*this};  // its places in the cache's lists of these names

    // Belongs to the worker that loads or compiles the package; at other times under the lock.
    LinkScope scope;
    std::atomic<bool> libraries_open{false};  // `scope`'s libraries are open, and stay open
    Destructors destructors;
    struct Refusal {
        Error why;
        TimePoint at;
    };
    bool loading GUARDED_BY(lock_of<CodeCache>) = false;  // its image waits for a worker, or is being loaded by it
    // The transient error because of which it was not loaded or compiled.
    std::optional<Refusal> refusal GUARDED_BY(lock_of<CodeCache>);
    bool constructing GUARDED_BY(lock_of<CodeCache>) = false;  // its constructors run, with the cache's lock free
    TimePoint constructing_since GUARDED_BY(lock_of<CodeCache>);
    // The constructors have run to their end, or there are none; if one threw, `error` is final.
    bool constructed GUARDED_BY(lock_of<CodeCache>) = false;
    bool has_constructors GUARDED_BY(lock_of<CodeCache>) = false;
    std::shared_ptr<DataSegment> data GUARDED_BY(lock_of<CodeCache>);  // kept over evictions
    struct StaticPlace {
        std::uint32_t number, offset;  // those of rove.static.n, in `data`
    };
    // Kept with `data`, for bitcode that arrives without the image.
    std::vector<StaticPlace> statics GUARDED_BY(lock_of<CodeCache>);
    NameMap<void*> exported
        GUARDED_BY(lock_of<CodeCache>);  // the names of an interface, taken from its code when that is loaded
    std::unique_ptr<LoadedImage> image GUARDED_BY(lock_of<CodeCache>);
    std::unique_ptr<bitcode::CompiledModule> module GUARDED_BY(lock_of<CodeCache>);
    // Code whose constructors have failed: threads that they started may still run in it, and others have addresses of it and of its statics.
    // Nothing calls it, because `error` is final.
    std::unique_ptr<LoadedImage> left_image GUARDED_BY(lock_of<CodeCache>);
    std::unique_ptr<bitcode::CompiledModule> left_module GUARDED_BY(lock_of<CodeCache>);
    Lacks image_lacks GUARDED_BY(lock_of<CodeCache>);
    Lacks module_lacks GUARDED_BY(lock_of<CodeCache>);
    Compile compile GUARDED_BY(lock_of<CodeCache>) = Compile::none;
};

inline Running::Running(PackageCode& package) : package_(&package) {
    package.running.fetch_add(1, std::memory_order_seq_cst);
}
inline Running::~Running() {
    if (package_ != nullptr) package_->running.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace rove::code
