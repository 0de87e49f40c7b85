// The compile thread: bitcode for the CPU that is there, and packages that are loaded ahead of their first call.
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
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
    const auto ended = [this] { return state_->compile_thread_ended; };
    if (state_->compile_thread.joinable() && !state_->compile_changed.wait_for(lock, kStopMax, ended)) {
        // It holds the state that it uses; its end is nobody's to wait for.
        state_->compile_abandoned = true;
        abandon_compile();
        state_->compile_thread.detach();
    }
    lock.unlock();
    {
        const std::lock_guard none_calls_back(state_->calling_back);
    }
    if (state_->compile_thread.joinable()) state_->compile_thread.join();
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

void CodeCache::State::start_compile_thread(bool warm_up) {
    if (compile_thread.joinable() || stopping) return;
    compile_thread = std::thread([state = shared_from_this(), warm_up]() mutable {
        if (warm_up)
            if (const Result<jit::Engine*> engine = state->engine())
                (*engine)->warm_up();  // an error comes again, where it matters
        if (state->compile_loop()) return;
        state.reset();  // with compiled code in it: LLVM is used until here
        --abandoned_compiles;
    });
}

// Whether somebody waits for its end.
bool CodeCache::State::compile_loop() {
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
    while (!stopping) {
        if (!compile_queue.empty()) {
            compiling = compile_queue.front();
            compile_queue.pop_front();
            const Digest digest = compiling->store->digest();
            compile_one(*compiling, lock);
            compiling = nullptr;
            trim();
            compile_changed.notify_all();
            if (options.on_ready) call_back([&] { options.on_ready(digest); });
        } else if (!loads_queue.empty()) {
            const Load load = std::move(loads_queue.front());
            loads_queue.pop_front();
            const Result<LoadReport> loaded = load_here(*load.package, lock);
            trim();
            compile_changed.notify_all();
            if (options.on_ready) call_back([&] { options.on_ready(load.package->digest()); });
            call_back([&] { load.done(loaded); });
        } else {
            compile_changed.wait(lock);
        }
    }
    compile_thread_ended = true;
    compile_changed.notify_all();
    return !compile_abandoned;
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
            std::erase(compile_queue, &package);
            compiling = &package;
            compile_one(package, lock);
            compiling = nullptr;
            if (package.error) return tl::unexpected<Error>(*package.error);
        }
        return store.manifest().interface ? link_interface(package, lock) : LoadReport{};
    }();
    package.running.fetch_sub(1, std::memory_order_seq_cst);
    return loaded;
}

// Compiles with the lock free; the package cannot be evicted or forgotten meanwhile.
Result<std::unique_ptr<jit::CompiledModule>> CodeCache::State::compile(PackageCode& package, Lock& lock) {
    ROVE_CHECK(open_libraries(package));
    ROVE_TRY(const ByteBuffer bitcode,
             package.store->raw_slice(*package.store->slice_index(host_triple(), Form::bitcode)));
    bool own_statics = false;
    const std::unordered_map<std::uint32_t, void*> statics = package.statics;
    lock.unlock();
    Result<std::unique_ptr<jit::CompiledModule>> module = [&]() -> Result<std::unique_ptr<jit::CompiledModule>> {
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
        package.constructed = true;
        package.has_constructors = true;  // it may have: the compiler does not tell
        constructed = (*module)->run_constructors();
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
