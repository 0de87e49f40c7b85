// Names to which arriving code is linked. They are looked up in this order: the node's own table; the names that the loader defines for each
// package; interfaces (the newest at the time when the package's first code was linked); the package's listed libraries, except for names that
// the C and C++ libraries define; all names of the process.
//
// Threads: any; Symbols and Destructors have locks of their own, under which nothing of a package runs. A LinkScope belongs to the worker
// that has its package.
//
// Invariants: a name that an interface has added keeps its address for as long as the node lives. When the generation has advanced, the
// names of that generation can be looked up.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "base/name_map.hpp"
#include "base/result.hpp"
#include "code/cache.hpp"

namespace rove::code {

// The destructors that run at a package's end: those of its statics, registered by its constructors and functions. The object's address is
// the package's wire::kDsoHandle. Threads: any; a function registers a static when it initialises it in its first call.
class Destructors {
public:
    // Runs the destructors of statics, each once, the last registered first; including those that are registered at this time.
    void run();
    // Drops functions registered for the package's end, because they may use what constructors that have not run would have made.
    void drop_functions();
    // Drops all, of statics and of threads.
    void drop();
    [[nodiscard]] bool empty() const;  // none, of statics or of threads
    // Registers a destructor of a static. False: there is no memory.
    [[nodiscard]] bool add(void (*function)(void*), void* object);
    // Registers one that runs when the calling thread ends.
    [[nodiscard]] bool add_for_thread(void (*function)(void*), void* object);
    // Runs a thread's destructors now, the last registered first. Called by that thread, or while it waits.
    void run_of_thread(pid_t kernel_id);
    // The number of the last of these, which grows with each registration by any package; 0: there is none.
    [[nodiscard]] std::uint64_t last_of_thread(pid_t kernel_id) const;
    void run_last_of_thread(pid_t kernel_id);
    // Whether a thread that has not ended has some: the package's code, and this object, must be kept for it.
    [[nodiscard]] bool awaits_threads() const { return of_threads_.load(std::memory_order_acquire) != 0; }

private:
    struct Entry {
        void (*function)(void*);
        void* object;
    };
    struct OfThread;
    static void run_at_end(void* of_thread);
    [[nodiscard]] bool take(OfThread& of_thread) REQUIRES(mutex_);
    [[nodiscard]] std::vector<OfThread*>::const_reverse_iterator find_last_of(pid_t kernel_id) const REQUIRES(mutex_);
    void forget_in_c();

    mutable Mutex mutex_;
    std::vector<Entry> entries_ GUARDED_BY(mutex_);
    std::vector<OfThread*> threads_ GUARDED_BY(mutex_);  // their destructors
    std::atomic<std::size_t> of_threads_{0};
};

// All libraries that packages have opened in a process: each has four mappings or more, of some 65,000.
inline constexpr std::size_t kLibrariesMax = 256;

// The sources of names for one package.
struct LinkScope {
    // Omits libraries that cannot be opened: entries that need none of their names can run.
    void open(const std::vector<std::string>& sonames);

    Destructors* destructors = nullptr;
    std::vector<void*> libraries;  // dlopen handles
    // Symbols::generation() when its code was first linked: code of the package that is linked later, in another form or after an eviction, gets
    // the same addresses for the names of interfaces. 0: no code has been linked.
    std::uint64_t as_of = 0;
    std::string left_out;  // the reasons and remedies, for messages about missing names; empty: all were opened
};

class Symbols {
public:
    explicit Symbols(const std::vector<HostSymbol>& host_symbols);

    [[nodiscard]] void* resolve(const std::string& name, const LinkScope& scope) const;
    // The address of a name in interfaces, or null: that of the newest interface at a generation (LinkScope::as_of), otherwise of the first one
    // after it. May be called under the engine's lock: it waits only while the names of an interface are being added.
    [[nodiscard]] void* of_interfaces(const std::string& name, std::uint64_t as_of = 0) const;
    // Advances when an interface has added names. To be read before names are looked up: if it is the same afterwards, missing names are
    // still missing.
    [[nodiscard]] std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
    // Whether the node's own table or the process (its program, its libraries) has a name.
    [[nodiscard]] bool is_of_process(const std::string& name) const;
    // Adds an interface's names, which take precedence over existing ones; returns those that were in use.
    [[nodiscard]] std::vector<std::string> add_interface(const std::string& package, const NameMap<void*>& names);

private:
    // These are kept for as long as the node lives.
    struct OfInterface {
        void* address = nullptr;
        std::shared_ptr<const std::string> package;
        std::uint64_t since = 0;  // the generation in which it was added
    };
    std::unordered_map<std::string, void*> host_;
    std::atomic<std::uint64_t> generation_{1};
    mutable Mutex mutex_;
    NameMap<std::vector<OfInterface>> of_interfaces_
        GUARDED_BY(mutex_);  // by name, the newest last: looked up under the engine's lock
};

}  // namespace rove::code
