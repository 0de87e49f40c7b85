#include "code/symbols.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <new>

#include "base/fork.hpp"
#include "base/made_once.hpp"
#include "base/mutex.hpp"
#include "package/libraries.hpp"
#include "wire/image.hpp"

extern "C" {
// Functions of the C++ ABI, which no header declares.
int __cxa_thread_atexit(void (*function)(void*), void* object, void* dso_handle) noexcept;  // NOLINT
void __cxa_finalize(void* dso_handle) noexcept;                                             // NOLINT
[[gnu::visibility("hidden")]] extern void* __dso_handle;                                    // NOLINT
}

namespace rove::code {
namespace {

// The libraries that packages have requested. They are never closed, because any code may have addresses in code that was linked to them.
class OpenedLibraries {
public:
    static OpenedLibraries& of_process() {
        static constinit MadeOnce<OpenedLibraries> kept;
        return kept.get([] { return new OpenedLibraries; });
    }
    [[nodiscard]] Result<void*> open(const std::string& soname) {
        {
            const MutexLock lock(mutex_);
            if (!libraries_.contains(soname) && libraries_.size() >= kLibrariesMax)
                return fail(ErrorCode::overloaded, "packages have opened {} libraries here, the most there may be",
                            kLibrariesMax);
            // Counted from here on, because others may request it while it is being opened.
            ++libraries_[soname].opening;
        }
        void* const handle = dlopen(soname.c_str(), RTLD_NOW | RTLD_LOCAL);
        const char* const why = handle == nullptr ? dlerror() : nullptr;
        const MutexLock lock(mutex_);
        const auto library = libraries_.find(soname);
        --library->second.opening;
        if (handle != nullptr) {
            library->second.is_open = true;
            return handle;
        }
        if (library->second.opening == 0 && !library->second.is_open) libraries_.erase(library);
        return fail(ErrorCode::unsupported, "{}", why);
    }

private:
    struct Library {
        // The number of threads that are in dlopen() for it, without the lock, because its constructors may request others.
        unsigned opening = 0;
        bool is_open = false;
    };
    OpenedLibraries() { hold_across_forks(mutex_); }
    Mutex mutex_;
    // The libraries that are open or being opened, by soname. At most kLibrariesMax.
    std::map<std::string, Library> libraries_ GUARDED_BY(mutex_);
};

// Shipped code calls these as C's library: 0 is success.
int register_destructor(void (*function)(void*), void* object, void* dso_handle) {
    return static_cast<Destructors*>(dso_handle)->add(function, object) ? 0 : -1;
}
int register_thread_destructor(void (*function)(void*), void* object, void* dso_handle) {
    return static_cast<Destructors*>(dso_handle)->add_for_thread(function, object) ? 0 : -1;
}

}  // namespace

void Destructors::run() {
    {
        const MutexLock lock(mutex_);
        while (!entries_.empty()) {
            const Entry last = entries_.back();
            entries_.pop_back();
            const Unlocked free(mutex_);
            last.function(last.object);
        }
    }
    forget_in_c();
}

// A destructor that is to run at a thread's end. Owned by the thread, which frees it then.
struct Destructors::OfThread {
    Destructors& of;
    const Entry entry;
    const pid_t thread;
    const std::uint64_t number = registered_.fetch_add(1, std::memory_order_relaxed) + 1;
    static constinit std::atomic<std::uint64_t> registered_;
    std::atomic<bool> is_taken{false};  // set by the thread that runs or drops it: once

    [[nodiscard]] bool take() { return !is_taken.exchange(true); }
};

constinit std::atomic<std::uint64_t> Destructors::OfThread::registered_{0};

// Removes the handlers for quick_exit and fork that were registered with the C library for the package.
void Destructors::forget_in_c() {
    __cxa_finalize(this);
}

// They are registered with the package's handle instead of an object (bitcode/package/exit_handlers.hpp).
void Destructors::drop_functions() {
    const MutexLock lock(mutex_);
    std::erase_if(entries_, [this](const Entry& each) { return each.object == this; });
}

void Destructors::drop() {
    forget_in_c();
    const MutexLock lock(mutex_);
    entries_.clear();
    std::erase_if(threads_, [this](OfThread* each) REQUIRES(mutex_) { return take(*each); });
}

bool Destructors::empty() const {
    const MutexLock lock(mutex_);
    return entries_.empty() && threads_.empty();
}

bool Destructors::add(void (*function)(void*), void* object) {
    try {
        const MutexLock lock(mutex_);
        entries_.push_back({function, object});
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

bool Destructors::add_for_thread(void (*function)(void*), void* object) {
    std::unique_ptr<OfThread> made(new (std::nothrow) OfThread{*this, {function, object}, gettid()});
    if (!made) return false;
    const MutexLock lock(mutex_);
    try {
        threads_.push_back(made.get());
    } catch (const std::bad_alloc&) {
        return false;
    }
    // Registered as this library's own, so that the library is not unloaded before the thread has ended.
    if (__cxa_thread_atexit(&run_at_end, made.get(), static_cast<void*>(&__dso_handle)) != 0) {
        threads_.pop_back();
        return false;
    }
    of_threads_.fetch_add(1, std::memory_order_relaxed);
    (void)made.release();
    return true;
}

// Removes one from the list; only the first thread to do so counts it as removed.
bool Destructors::take(OfThread& of_thread) {
    if (!of_thread.take()) return false;
    of_threads_.fetch_sub(1, std::memory_order_release);
    return true;
}

void Destructors::run_of_thread(pid_t kernel_id) {
    while (last_of_thread(kernel_id) != 0) run_last_of_thread(kernel_id);
}

std::vector<Destructors::OfThread*>::const_reverse_iterator Destructors::find_last_of(pid_t kernel_id) const {
    return std::find_if(threads_.rbegin(), threads_.rend(),
                        [kernel_id](const OfThread* each) { return each->thread == kernel_id && !each->is_taken; });
}

std::uint64_t Destructors::last_of_thread(pid_t kernel_id) const {
    const MutexLock lock(mutex_);
    const auto last = find_last_of(kernel_id);
    return last != threads_.rend() ? (*last)->number : 0;
}

void Destructors::run_last_of_thread(pid_t kernel_id) {
    const MutexLock lock(mutex_);
    const auto last = find_last_of(kernel_id);
    if (last == threads_.rend()) return;
    OfThread& taken = **last;
    const Entry entry = taken.entry;
    threads_.erase(std::next(last).base());
    if (!take(taken)) return;
    const Unlocked free(mutex_);
    entry.function(entry.object);
}

// The package's code, and this object, are kept for it: it is counted.
void Destructors::run_at_end(void* of_thread) {
    const std::unique_ptr<OfThread> mine(static_cast<OfThread*>(of_thread));
    if (!mine->take()) return;
    Destructors& of = mine->of;
    {
        const MutexLock lock(of.mutex_);
        std::erase(of.threads_, mine.get());
    }
    mine->entry.function(mine->entry.object);
    of.of_threads_.fetch_sub(1, std::memory_order_release);
}

Symbols::Symbols(const std::vector<HostSymbol>& host_symbols) {
    for (const HostSymbol& symbol : host_symbols) host_.emplace(symbol.name, symbol.address);
    host_.emplace("__cxa_atexit", reinterpret_cast<void*>(&register_destructor));
    host_.emplace("__cxa_thread_atexit", reinterpret_cast<void*>(&register_thread_destructor));
}

// The number of missing libraries that a message names: a peer may list thousands, and each failing call has the message.
static constexpr std::size_t kLibrariesNamed = 4;

void LinkScope::open(const std::vector<std::string>& sonames) {
    std::vector<void*> handles;
    std::string why;
    std::size_t lacking = 0;
    for (const std::string& soname : sonames) {
        // These are loaded already, or must not be: a sanitizer's would end the process.
        if (is_on_every_node(soname)) continue;
        const Result<void*> opened = OpenedLibraries::of_process().open(soname);
        if (opened)
            handles.push_back(*opened);
        else if (++lacking <= kLibrariesNamed)
            why += fmt::format("{}its library {} cannot be opened ({})", why.empty() ? "" : "; ", soname,
                               opened.error().message());
    }
    if (lacking > kLibrariesNamed) why += fmt::format("; and {} more", lacking - kLibrariesNamed);
    if (lacking > 0) why += "; install what is lacking on that node, and start that node again";
    libraries = std::move(handles);
    left_out = std::move(why);
}

void* Symbols::resolve(const std::string& name, const LinkScope& scope) const {
    if (const auto own = host_.find(name); own != host_.end()) return own->second;
    if (name == wire::kDsoHandle) return scope.destructors;
    if (void* address = of_interfaces(name, scope.as_of)) return address;
    void* const of_process = dlsym(RTLD_DEFAULT, name.c_str());
    for (void* library : scope.libraries) {
        void* const of_library = dlsym(library, name.c_str());
        if (of_library == nullptr) continue;
        // Mostly the same, because dlsym() also searches the libraries that this one needs. Finding other owners of a name takes 20 to 90 us.
        if (of_library == of_process) return of_process;
        return of_process != nullptr && every_node_has(name) ? of_process : of_library;
    }
    return is_of_rove_alone(of_process) ? nullptr : of_process;
}

void* Symbols::of_interfaces(const std::string& name, std::uint64_t as_of) const {
    const MutexLock lock(mutex_);
    const auto found = of_interfaces_.find(name);
    if (found == of_interfaces_.end()) return nullptr;
    const std::vector<OfInterface>& all = found->second;
    const auto newest = std::find_if(all.rbegin(), all.rend(),
                                     [as_of](const OfInterface& each) { return as_of == 0 || each.since <= as_of; });
    return newest != all.rend() ? newest->address : all.front().address;
}

bool Symbols::is_of_process(const std::string& name) const {
    if (host_.contains(name) || name == wire::kDsoHandle) return true;
    const void* const found = dlsym(RTLD_DEFAULT, name.c_str());
    return found != nullptr && !is_of_rove_alone(found);
}

std::vector<std::string> Symbols::add_interface(const std::string& package, const NameMap<void*>& names) {
    const auto shared = std::make_shared<const std::string>(package);
    const MutexLock lock(mutex_);
    std::vector<std::string> replaced;
    const std::uint64_t since = generation_.load(std::memory_order_relaxed) + 1;
    for (const auto& [name, address] : names) {
        std::vector<OfInterface>& all = of_interfaces_[name];
        if (!all.empty() && all.back().address == address) {
            all.back().package = shared;
            continue;
        }
        if (!all.empty()) replaced.push_back(name + " (was of package " + *all.back().package + ")");
        all.push_back({address, shared, since});
    }
    generation_.fetch_add(1, std::memory_order_release);
    return replaced;
}

}  // namespace rove::code
