// CodeCache: the functions a node knows, and their code while it is loaded.
//
// A Function is a record that outlives its code: it is made when its package becomes known, keeps its handle, and can be loaded, evicted
// and loaded again. Dispatch is by_handle (one array look-up), enter, run, leave.
//
// Threads: any; enter_leading(), leave_leading() and keep_leading() by the one thread that leads that engine. `on_ready` is called on threads of
// the cache's own, without its lock.
//
// Invariants: while a function of a package is entered, its code is neither evicted nor replaced under it. The constructors of a package run at
// most once. After stop() nothing is called back.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "code/pace.hpp"
#include "package/package.hpp"
#include "rove/forms.hpp"
#include "rove/rove.h"
#include "wire/image.hpp"

namespace rove::bitcode {
class Compiler;
}

namespace rove::code {

using EntryPoint = void (*)(rove_here* here, const void* payload, std::size_t size);

struct HostSymbol {
    std::string_view name;
    void* address;
};

struct CodeOptions {
    std::string node = "this node";        // for messages
    std::vector<HostSymbol> host_symbols;  // the node's own table: rove_*
    Forms forms = Forms::both;             // forms that are run
    // Bound on all that is held for packages that peers have sent. 256 MiB: a few thousand small packages, or four of the largest.
    //   1/2 at most (or 1 MiB, if that is more): code that cannot be evicted: pinned packages, interfaces. A pinned package takes its
    //       place from this share, and none from others.
    //   1/4 at most (or 1 MiB): manifests of the packages that are known.
    //   the rest: slices, and code that can be evicted; 1/4 = 64 MiB at least, one slice of the largest.
    // Preloaded packages are not counted, because the user of the node chooses them.
    std::size_t code_bytes_max = 256 * 1024 * 1024;
    // The most packages that are known. With manifests of at most 64 KiB, 256 MiB.
    std::size_t packages_max = 4096;
    // Bound on the writable statics kept over evictions; a package that would exceed it is refused as overloaded.
    std::size_t static_bytes_max = wire::kNodeStaticBytesMax;
    // Called when code for which a call waits has been loaded or compiled, or could not be (enter then returns the error).
    std::function<void(const Digest& package)> on_ready;
    // Returns the compiler; empty: librove-jit.so's is used. Tests set their own.
    std::function<Result<bitcode::Compiler*>()> compiler;
};

class CodeCache;
class Leading;      // an engine's place: code/leading.hpp
class PackageCode;  // the loaded state of one package; private to this folder

struct Function {
    FunctionId id;
    std::string name;  // "package:entry"
    std::uint32_t handle = 0;
    std::uint32_t entry = 0;                  // index into the manifest's entries
    PackageCode* package = nullptr;           // null: a function of the process's own program
    std::atomic<EntryPoint> target{nullptr};  // null: not loaded
    std::atomic<RanAs> ran{RanAs::image};
    // Written and read by the node's engines, and not by the cache:
    Pace pace;
    std::atomic<bool> waits_quietly{false};  // its last run waited quietly (lead/quiet.hpp)
    mutable std::atomic<bool> gathers{
        false};  // a run of it has declared that it can read its payload while that arrives
    // For the cache alone: the function's addresses in the image and in the compiled bitcode, while these are loaded, whether or not all that it
    // needs exists; and the generation of names at which its missing names were last looked up (Symbols::generation).
    EntryPoint image GUARDED_BY(lock_of<CodeCache>) = nullptr;
    EntryPoint compiled GUARDED_BY(lock_of<CodeCache>) = nullptr;
    std::uint64_t names_seen GUARDED_BY(lock_of<CodeCache>) = 0;
    // Why it could not be called at that generation of names. Kept, because thousands of names may be missing and each call reports the reason.
    mutable std::optional<std::pair<std::uint64_t, Error>> why_none GUARDED_BY(lock_of<CodeCache>);
};

// A function whose code cannot be evicted while this object exists.
class Entered {
public:
    Entered(EntryPoint entry, RanAs ran, PackageCode* package) : entry_(entry), ran_(ran), package_(package) {}
    Entered(Entered&& other) noexcept
        : entry_(other.entry_), ran_(other.ran_), package_(std::exchange(other.package_, nullptr)) {}
    Entered& operator=(Entered&&) = delete;
    ~Entered() EXCLUDES(lock_of<CodeCache>);  // it may evict
    void run(rove_here* here, const void* payload, std::size_t size) const { entry_(here, payload, size); }
    [[nodiscard]] EntryPoint entry() const { return entry_; }
    [[nodiscard]] RanAs ran() const { return ran_; }

private:
    EntryPoint entry_;
    RanAs ran_;
    PackageCode* package_;
};

// The event for which a call of a function waits.
enum class Awaited : std::uint8_t {
    code,     // the package has no slice here that this node can use: request one
    loading,  // it is being loaded or compiled; on_ready is called when it is
};

class CodeCache {
public:
    explicit CodeCache(CodeOptions options);
    ~CodeCache();  // stops; runs destructors of shipped statics
    CodeCache(const CodeCache&) = delete;

    // Makes a package known and returns the one copy that the cache keeps: the given one, or the one known before with the given one's
    // slices added. `resident`: preloaded, reported as RanAs::resident, never evicted. `from`: the node that sent it, or kNoNode: the
    // compiler takes turns between the nodes that wait for packages, and if none waits, between the senders. overloaded: too many.
    [[nodiscard]] Result<std::shared_ptr<PackageStore>> add(const std::shared_ptr<PackageStore>& package, bool resident,
                                                            NodeId from = kNoNode);
    [[nodiscard]] std::shared_ptr<PackageStore> package(const Digest& digest) const;         // null: unknown
    [[nodiscard]] std::shared_ptr<PackageStore> package_of(const Function& function) const;  // null: it has none
    // Adds a function of the process's own program, which is never evicted or forgotten. overloaded: too many functions.
    [[nodiscard]] Result<Function*> add_resident(const FunctionId& id, std::string name, EntryPoint entry);
    // The function whose code begins there, in any of its tiers; null: none that is loaded.
    [[nodiscard]] Function* find(EntryPoint entry) const;
    // To be called after slices were added to a known package (more bytes held, a better form).
    void slices_added(const Digest& digest);

    [[nodiscard]] Function* by_handle(std::uint32_t handle) const;  // null: no such handle, or of an older generation
    [[nodiscard]] Function* find(const FunctionId& id) const;
    // By "package:entry", the newest package of that name; or by 32 hexadecimal digits.
    [[nodiscard]] Function* find(std::string_view name) const;

    // Loads the code if necessary and keeps it loaded. An Error is final for this code on this node: a symbol that does not exist (names
    // symbol, function and node), a dependency that cannot be opened, a malformed image, no form for this target, a constructor that threw.
    // After the first two another attempt is made when an interface has been loaded; after `overloaded`, at any later call. `asker`: the
    // node that made or forwarded the call, or kNoNode for this one: the compiler takes turns between these.
    [[nodiscard]] std::variant<Entered, Awaited, Error> enter(Function& function, NodeId asker = kNoNode);
    // A place for an engine, which exists for as long as the cache. An engine may use a function that it has looked up for as long as it
    // holds its lock, also if the cache forgets it in that time. In each turn, when it holds no function that it has looked up and not
    // entered, it calls let_go(): then the cache may free what it has forgotten.
    [[nodiscard]] Leading& add_leader();
    void let_go(Leading& place);
    // enter() for the one thread that leads that engine, at the cost of two plain stores: returns the entry point if the code is
    // loaded, else null. One function at a time, until leave_leading(), or until keep_leading() makes an Entered of it because
    // another thread leads from then on.
    [[nodiscard]] EntryPoint enter_leading(Leading& place, Function& function);
    void leave_leading(Leading& place);
    [[nodiscard]] Entered keep_leading(Leading& place);

    // Links an interface so that functions that arrive later bind to its names. Synchronous, compile included.
    [[nodiscard]] Result<LoadReport> load_interface(const std::shared_ptr<PackageStore>& package);
    // Makes a package's code ready before its first call, without running it.
    [[nodiscard]] Status load(const std::shared_ptr<PackageStore>& package);

    // unsupported: why a package cannot be loaded that has a form for this node, but none whose code has arrived.
    [[nodiscard]] Error why_incomplete(const PackageStore& package) const;

    // Both of these in the background; `done` is called when it is loaded (and linked, if it is an interface); not once the cache has
    // stopped. overloaded: kLoadsMax requests wait already, kLoadsOfNodeMax of this asker, or kLoadsOfPackageMax for this package, or the
    // machine has no thread for it.
    [[nodiscard]] Status load_later(const std::shared_ptr<PackageStore>& package,
                                    std::function<void(const Result<LoadReport>&)> done, NodeId asker = kNoNode);
    static constexpr std::size_t kLoadsMax = 64;  // each holds its package, of 64 MiB at most
    static constexpr std::size_t kLoadsOfNodeMax = 16;
    // Requests for one package, whose constructors may never end. Up to 16 packages can run constructors at the same time, so others still
    // can.
    static constexpr std::size_t kLoadsOfPackageMax = 3;

    // Loads and compiles nothing more, and calls neither on_ready nor `done` of load_later from here on. Waits for a running compile, but
    // no longer than kStopMax: LLVM cannot be interrupted. A compile that takes longer is abandoned with all that it uses; if the process
    // ends before it does, it ends without destructors of static objects, because the compile uses LLVM's.
    void stop();
    static constexpr auto kStopMax = std::chrono::seconds(1);

    // Opens the compiler in the background, so that it is open when the first bitcode arrives: loading LLVM takes some 50 ms, in which no other
    // thread can look up symbols.
    void warm_up();
    // For tests, which cannot detect otherwise that no work is left: blocks until the background tier of every loaded package is in place.
    void wait_for_tiers();

    [[nodiscard]] std::vector<std::shared_ptr<PackageStore>> packages() const;  // the resident ones
    struct Usage {
        std::size_t code_bytes, static_bytes, packages, functions, evictions, loads;
        std::size_t pinned_bytes, manifest_bytes;  // these are parts of code_bytes
    };
    [[nodiscard]] Usage usage() const;

private:
    friend class Entered;
    // A function was left: evicts, if more is held than fits.
    void left() EXCLUDES(lock_of<CodeCache>);
    void evict() EXCLUDES(lock_of<CodeCache>);

    struct State;
    std::shared_ptr<State> state_;  // shared with its workers alone
};

// For a process that will run shipped code: to be called early, before it has threads (see CodePool::prepare_process).
void prepare_process();

// For a process that ends when its node does: code and statics stay in memory when a cache ends, because threads and timers that shipped
// code has left may still run it. Callable from any thread, before the cache ends.
void leave_code_in_place();

// The triple of the machine this runs on, as packages name it.
[[nodiscard]] std::string_view host_triple();

}  // namespace rove::code
