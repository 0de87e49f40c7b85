// The compile thread: bitcode for the CPU that is there, and packages that are loaded ahead of their first call.
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "code/cache_state.hpp"

namespace rove::code {

using wire::Form;

namespace {

std::atomic<int> abandoned_compiles{0};

// At the process's end LLVM's static objects are destroyed, which a compile that goes on still uses. This runs before that.
void end_without_destructors(int status, void* /*argument*/) {
    if (abandoned_compiles.load() == 0) return;
    (void)std::fflush(nullptr);
    _exit(status);
}

void abandon_compile() {
    ++abandoned_compiles;
    static const int registered = on_exit(&end_without_destructors, nullptr);
    (void)registered;
}

}  // namespace

void CodeCache::stop() {
    State::Lock lock(state_->mutex);
    state_->stopping = true;
    state_->compile_changed.notify_all();
    (void)state_->compile_changed.wait_for(lock, kStopMax, [this] { return state_->have_ended(); });
    for (State::Worker& each : state_->workers) {
        if (each.ended || each.abandoned) continue;
        // It holds the state that it uses; its end is nobody's to wait for.
        each.abandoned = true;
        abandon_compile();
        each.thread.detach();
    }
    lock.unlock();
    {
        const std::lock_guard none_calls_back(state_->calling_back);
    }
    lock.lock();
    state_->reap_workers();
}

void CodeCache::State::queue_compile(PackageCode& package) {
    if (package.compile != PackageCode::Compile::none || options.tiers == Tiers::image ||
        !stored(package, Form::bitcode))
        return;
    package.compile = PackageCode::Compile::queued;
    compile_queue.push_back(&package);  // at most one entry a package
    start_compile_thread(false);
    compile_changed.notify_all();
}

// False: the machine has no thread for it now. What is queued waits until somebody queues more, or gives up waiting.
bool CodeCache::State::start_compile_thread(bool warm_up) {
    if (on_duty != nullptr || stopping) return true;
    reap_workers();
    Worker& worker = workers.emplace_back();
    try {
        worker.thread = std::thread([state = shared_from_this(), self = &worker, warm_up]() mutable {
            if (warm_up)
                if (const Result<jit::Engine*> engine = state->engine())
                    (*engine)->warm_up();  // an error comes again, where it matters
            if (state->compile_loop(*self)) return;
            state.reset();  // with compiled code in it: LLVM is used until here
            --abandoned_compiles;
        });
    } catch (const std::system_error&) {
        workers.pop_back();
        return false;
    }
    on_duty = &worker;
    return true;
}

// Those that have ended hold no lock any more.
void CodeCache::State::reap_workers() {
    for (auto each = workers.begin(); each != workers.end();) {
        if (!each->ended || each->abandoned) {
            ++each;
            continue;
        }
        each->thread.join();
        each = workers.erase(each);
    }
}

// Runs a package's constructors with the lock free, on the compile thread, whose work another thread goes on with.
Status CodeCache::State::construct(PackageCode& package, const std::function<Status()>& run, Lock& lock) {
    if (stopping) return fail(ErrorCode::cancelled, "{} stopped while it was loaded", options.node);
    const std::string& name = package.store->manifest().name;
    if (constructing >= kConstructingMax)
        return fail(
            ErrorCode::overloaded,
            "package {} has constructors, and those of {} packages run on {} already, the most that may; call it "
            "later, or restart that node if they never end",
            name, constructing, options.node);
    Worker* const self = std::exchange(on_duty, nullptr);
    if (!start_compile_thread(false)) {
        on_duty = self;
        return fail(ErrorCode::overloaded, "{} has no thread for the constructors of package {}; call it later",
                    options.node, name);
    }
    ++constructing;
    package.constructing = true;
    lock.unlock();
    Status done;
    try {
        done = run();
    } catch (const std::exception& error) {
        done = fail(ErrorCode::failed, "a constructor of package {} let an exception out: {}", name, error.what());
    } catch (...) {
        done = fail(ErrorCode::failed, "a constructor of package {} let an exception out", name);
    }
    lock.lock();
    --constructing;
    if (stopping) return fail(ErrorCode::cancelled, "{} stopped while it was loaded", options.node);
    package.constructing = false;
    return done;
}

// Whether somebody waits for its end.
bool CodeCache::State::compile_loop(Worker& self) {
    // Waking this thread is not to push aside the one that wakes it: that has a call to run, on the image.
    const sched_param none{};
    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
    Lock lock(mutex);
    const auto call_back = [this, &lock](const auto& what) {
        lock.unlock();
        {
            const std::lock_guard calls(calling_back);
            lock.lock();
            const bool stopped = stopping;
            lock.unlock();
            if (!stopped) what();
        }
        lock.lock();
    };
    while (!stopping && on_duty == &self) {
        if (!images_queue.empty()) {
            PackageCode& package = *images_queue.front();
            images_queue.pop_front();
            const Digest digest = package.store->digest();
            ++working;
            load_apart(package, lock);
            --working;
            if (stopping) break;
            trim();
            compile_changed.notify_all();
            if (options.on_ready) call_back([&] { options.on_ready(digest); });
        } else if (!compile_queue.empty()) {
            PackageCode* const compiling = compile_queue.front();
            compile_queue.pop_front();
            const Digest digest = compiling->store->digest();
            ++working;
            compile_one(*compiling, lock);
            --working;
            if (stopping) break;
            trim();
            compile_changed.notify_all();
            if (options.on_ready) call_back([&] { options.on_ready(digest); });
        } else if (const auto next = next_load(); next != loads_queue.end()) {
            const Load load = std::move(*next);
            loads_queue.erase(next);
            ++working;
            const Result<LoadReport> loaded = load_here(*load.package, lock);
            --working;
            if (stopping) break;
            trim();
            compile_changed.notify_all();
            if (options.on_ready) call_back([&] { options.on_ready(load.package->digest()); });
            call_back([&] { load.done(loaded); });
        } else {
            compile_changed.wait(lock);
        }
    }
    self.ended = true;
    compile_changed.notify_all();
    return !self.abandoned;
}

Status CodeCache::load_later(std::shared_ptr<PackageStore> package,
                             std::function<void(const Result<LoadReport>&)> done) {
    const std::lock_guard lock(state_->mutex);
    if (state_->loads_queue.size() >= kLoadsMax)
        return fail(ErrorCode::overloaded,
                    "{} packages wait to be loaded on {} already, the most there may; load {} later", kLoadsMax,
                    state_->options.node, package->manifest().name);
    state_->loads_queue.push_back({std::move(package), std::move(done)});
    state_->start_compile_thread(false);
    state_->compile_changed.notify_all();
    return {};
}

// The first whose package's constructors do not run in another thread just now: those that load it wait for them.
auto CodeCache::State::next_load() -> std::deque<Load>::iterator {
    return std::find_if(loads_queue.begin(), loads_queue.end(), [this](const Load& load) {
        const auto known = packages.find(load.package->digest());
        return known == packages.end() || !known->second->constructing;
    });
}

// What load and load_interface do, in the thread that would compile for them.
Result<LoadReport> CodeCache::State::load_here(const PackageStore& store, Lock& lock) {
    const auto known = packages.find(store.digest());
    if (known == packages.end()) return fail(ErrorCode::invalid, "package {} is not known", store.manifest().name);
    PackageCode& package = *known->second;
    package.running.fetch_add(1, std::memory_order_seq_cst);  // its code stays between loading and linking
    const Result<LoadReport> loaded = [&]() -> Result<LoadReport> {
        ROVE_TRY(const Ready ready, make_ready(package));
        if (ready == Ready::code)
            return fail(ErrorCode::invalid, "package {} is not here whole", store.manifest().name);
        if (ready == Ready::compile) {
            if (std::erase(images_queue, &package) > 0) {
                load_apart(package, lock);
            } else {
                std::erase(compile_queue, &package);
                compile_one(package, lock);
            }
            if (stopping) return fail(ErrorCode::cancelled, "{} stopped while it was loaded", options.node);
            if (const std::optional<Error> refusal = std::exchange(package.refusal, std::nullopt))
                return tl::unexpected<Error>(*refusal);
            if (package.error) return tl::unexpected<Error>(*package.error);
        }
        return store.manifest().interface ? link_interface(package, lock) : LoadReport{};
    }();
    package.running.fetch_sub(1, std::memory_order_seq_cst);
    return loaded;
}

// Compiles with the lock free; the package cannot be evicted or forgotten meanwhile.
Result<std::unique_ptr<jit::CompiledModule>> CodeCache::State::compile(PackageCode& package, Lock& lock) {
    bool own_statics = false;
    const std::unordered_map<std::uint32_t, void*> statics = package.statics;
    lock.unlock();
    Result<std::unique_ptr<jit::CompiledModule>> module = [&]() -> Result<std::unique_ptr<jit::CompiledModule>> {
        ROVE_CHECK(open_libraries(package));
        ROVE_TRY(const ByteBuffer bitcode,
                 package.store->raw_slice(*package.store->slice_index(host_triple(), Form::bitcode)));
        ROVE_TRY(jit::Engine * compiler, engine());
        return compiler->compile(
            {.name = package.functions.size() == 1 ? package.functions.front()->name : package.store->manifest().name,
             .bitcode = bitcode,
             .resolve = [&](std::string_view name) { return symbols.resolve(std::string(name), package.scope); },
             .static_address = [&](std::size_t n) -> void* {
                 const auto place = statics.find(static_cast<std::uint32_t>(n));
                 if (place != statics.end()) return place->second;
                 own_statics = true;
                 return nullptr;
             }});
    }();
    lock.lock();
    if (stopping) return fail(ErrorCode::cancelled, "{} stopped while it was compiled", options.node);
    if (!module)
        return tl::unexpected<Error>(
            Error(module.error().code(), fmt::format("{} (on {})", module.error().message(), options.node)));
    // Statics that live in the compiled module would be lost with it.
    package.pinned = package.pinned || own_statics;
    if (package.pinned && !package.image) ROVE_CHECK(check_pinned(package, (*module)->code_bytes()));
    return module;
}

void CodeCache::State::compile_one(PackageCode& package, Lock& lock) {
    Result<std::unique_ptr<jit::CompiledModule>> module = compile(package, lock);
    if (package.awaited_until.load(std::memory_order_relaxed) != 0) package.await();  // however long that took
    Status constructed;
    if (module && !package.constructed) {
        package.has_constructors = (*module)->has_constructors();
        if (package.has_constructors)
            constructed = construct(package, [&module] { return (*module)->run_constructors(); }, lock);
        if (stopping) return;
        package.constructed = constructed.has_value();
    }
    if (!constructed && constructed.error().code() == ErrorCode::overloaded) {
        package.compile = PackageCode::Compile::none;
        package.refusal = constructed.error();
        return;
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
    epoch.fetch_add(1);
    publish(package);
    count(package);
}

}  // namespace rove::code
