// The threads of a cache. One loads images, and what a peer has asked to be loaded; one compiles bitcode, which may take LLVM seconds; others
// run constructors, which may never end.
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/float_environment.hpp"
#include "code/cache_state.hpp"
#include "code/own_thread.hpp"

namespace rove::code {

namespace {

std::atomic<int> abandoned_workers{0};

// At the process's end LLVM's static objects are destroyed, which a worker that goes on may still use. This runs before that.
void end_without_destructors(int status, void* /*argument*/) {
    if (abandoned_workers.load() == 0) return;
    (void)std::fflush(nullptr);
    _exit(status);
}

// What LLVM has freed lies unsorted in the C library's heap, which all threads of rove node share. The next thread that asks for memory
// would sort it, and that is often the leader, in somebody's first call: 3 to 20 us of its 30 to 100. So it is done here, where nobody waits.
void sort_freed_memory() {
    constexpr std::size_t kBeyondSmallBins = 64 << 10;  // and less than what gets a mapping of its own
    void* volatile block = std::malloc(kBeyondSmallBins);
    std::free(block);
}

void abandon_worker() {
    if (abandoned_workers++ == 0) (void)on_exit(&end_without_destructors, nullptr);
}

}  // namespace

void CodeCache::stop() {
    const TimePoint until = Clock::now() + kStopMax;
    const LockOf lock(state_->lock.mutex());
    state_->lock.stop();
    while (!state_->have_ended() && Clock::now() < until) state_->lock.wait_until(until);
    for (State::Worker& each : state_->workers) {
        if (each.ended || each.abandoned) continue;
        // The thread shares ownership of what it uses, so nobody need wait for its end.
        each.abandoned = true;
        abandon_worker();
        each.thread.detach();
    }
    state_->lock.wait_for_callbacks();
    for (State::Worker& each : state_->workers)
        if (!each.abandoned) each.thread.join();
    state_->workers.remove_if([](const State::Worker& each) REQUIRES(lock_of<CodeCache>) { return !each.abandoned; });
}

// overloaded: no thread can be created now.
Status CodeCache::State::start_worker(Duty duty, bool warm_up) {
    if (on_duty(duty) != nullptr || lock.has_stopped()) return {};
    reap_workers();
    const std::size_t before = workers.size();
    try {
        Worker& worker = workers.emplace_back(Worker{.duty = duty, .thread = {}});
        worker.thread = start_thread([state = shared_from_this(), self = &worker, warm_up]() mutable {
            if (warm_up) state->warm_compiler();
            if (state->work(*self)) return;
            state.reset();  // with compiled code in it: LLVM is used until here
            --abandoned_workers;
        });
    } catch (const std::exception& error) {  // no thread, or no memory for one
        if (workers.size() > before) workers.pop_back();
        return fail(ErrorCode::overloaded,
                    "{} can {} no package: its machine has no thread for that now ({}); call it later, or allow that "
                    "node more threads",
                    options.node, duty == Duty::images ? "load" : "compile", error.what());
    }
    on_duty(duty) = &workers.back();
    return {};
}

// An error here is ignored: it occurs again when the code is needed, and is reported then.
void CodeCache::State::warm_compiler() const {
    try {
        if (const Result<jit::Engine*> compiler = engine()) (*compiler)->warm_up();
    } catch (const std::exception&) {
    }
}

// Under the lock, so only those that the kernel has no more: what a package left for a thread's end may take long.
void CodeCache::State::reap_workers() {
    for (auto each = workers.begin(); each != workers.end();) {
        if (!each->ended || each->abandoned || is_alive(each->kernel_id)) {
            ++each;
            continue;
        }
        each->thread.join();
        each = workers.erase(each);
    }
}

// Does the duty's jobs until another worker takes it over or the cache stops. False: it was abandoned, and nobody joins it.
bool CodeCache::State::work(Worker& self) {
    // As a batch thread: waking it must not preempt the thread that wakes it, which has other calls to run.
    const sched_param none{};
    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
    const LockOf held(lock.mutex());
    self.kernel_id = gettid();
    while (!lock.has_stopped() && on_duty(self.duty) == &self)
        if (!(self.duty == Duty::images ? load_next() : compile_next())) lock.wait();
    self.ended = true;
    lock.notify_all();
    return !self.abandoned;
}

bool CodeCache::State::load_next_image() {
    if (images_queue.empty()) return false;
    PackageCode& package = *images_queue.front();
    images_queue.pop_front();
    const Digest digest = package.store->digest();
    ++working;
    load_apart(package);
    worked(digest);
    return true;
}

bool CodeCache::State::compile_next() {
    if (compile_queue.empty()) return false;
    PackageCode& package = compile_queue.begin();
    const Digest digest = package.store->digest();
    ++working;
    compile_one(package);
    worked(digest);
    const UnlockedOf free(lock.mutex());
    sort_freed_memory();
    return true;
}

// Images come first, because calls wait for them. A load stays queued while its package is being loaded or compiled anywhere.
bool CodeCache::State::load_next() {
    if (load_next_image()) return true;
    const auto next = std::find_if(loads_queue.begin(), loads_queue.end(),
                                   [](const Load& load)
                                       REQUIRES(lock_of<CodeCache>) { return !load.running.package().is_under_way(); });
    if (next == loads_queue.end()) return false;
    Result<std::optional<Awaited>> awaited = lock.or_error(
        next->running.package(), [&]() REQUIRES(lock_of<CodeCache>) { return make_ready(next->running.package()); });
    if (awaited && *awaited == Awaited::loading) return true;  // now it is under way
    Load load = std::move(*next);
    PackageCode& package = load.running.package();
    loads_queue.erase(next);
    ++working;
    const Result<LoadReport> loaded = lock.or_error(package, [&]() REQUIRES(lock_of<CodeCache>) -> Result<LoadReport> {
        const wire::Manifest& manifest = package.store->manifest();
        if (!awaited) return tl::unexpected<Error>(std::move(awaited.error()));
        if (*awaited == Awaited::code) return fail(ErrorCode::invalid, "package {} is not here whole", manifest.name);
        return manifest.interface ? link_interface(package) : LoadReport{};
    });
    const Digest digest = package.store->digest();
    {
        const Running over = std::move(load.running);
    }
    worked(digest);
    const Result<LoadReport> without_memory = tl::unexpected<Error>(no_memory());
    const auto tell = [&](const Result<LoadReport>& answer) {
        try {
            load.done(answer);
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    };
    lock.call_back([&] { (void)(tell(loaded) || tell(without_memory)); });  // an error takes less
    return true;
}

void CodeCache::State::worked(const Digest& package) {
    --working;
    if (lock.has_stopped()) return;
    evictor.trim_if_possible();
    lock.notify_all();
    if (options.on_ready) lock.call_back([&] { options.on_ready(package); });
}

// Runs a package's constructors on this worker without the lock; another thread takes over the worker's duty.
Status CodeCache::State::construct(PackageCode& package, Duty duty, const std::function<void()>& run) {
    if (lock.has_stopped()) return tl::unexpected<Error>(lock.why_cancelled());
    const std::string& name = package.store->manifest().name;
    if (constructing >= kConstructingMax)
        return fail(
            ErrorCode::overloaded,
            "package {} has constructors, and those of {} packages run on {} already, the most that may; call it "
            "later, or restart that node if they never end",
            name, constructing, options.node);
    Worker* const self = std::exchange(on_duty(duty), nullptr);
    if (const Status started =
            lock.or_error(package, [&]() REQUIRES(lock_of<CodeCache>) { return start_worker(duty); });
        !started) {
        on_duty(duty) = self;
        return prefixed(started.error(), fmt::format("package {} has constructors", name));
    }
    ++constructing;
    package.constructing = true;
    Status done = [&]() REQUIRES(lock_of<CodeCache>) {
        const UnlockedOf free(lock.mutex());
        const std::string there = fmt::format("{} on {}", name, options.node);
        Status constructed = in_own_thread(there, "constructor", run);
        // Its code is about to be released: what has been constructed is destroyed first.
        const auto goes_on = [](const Status& each) { return !each && each.error().code() != ErrorCode::overloaded; };
        for (bool more = goes_on(constructed); more && !package.destructors.empty();)
            more = goes_on(in_own_thread(there, "destructor", [&] { package.destructors.run(); }));
        if (!constructed) package.destructors.drop();  // there was no thread for them
        return constructed;
    }();
    --constructing;
    if (lock.has_stopped()) return tl::unexpected<Error>(lock.why_cancelled());
    package.constructing = false;
    return done;
}

Status CodeCache::load_later(const std::shared_ptr<PackageStore>& package,
                             std::function<void(const Result<LoadReport>&)> done) {
    const LockOf lock(state_->lock.mutex());
    if (state_->loads_queue.size() >= kLoadsMax)
        return fail(ErrorCode::overloaded,
                    "{} packages wait to be loaded on {} already, the most there may; load {} later", kLoadsMax,
                    state_->options.node, package->manifest().name);
    const auto of_this = std::count_if(state_->loads_queue.begin(), state_->loads_queue.end(), [&](const auto& load) {
        return load.running.package().store->digest() == package->digest();
    });
    if (static_cast<std::size_t>(of_this) >= kLoadsOfPackageMax)
        return fail(ErrorCode::overloaded,
                    "{} loads of package {} wait on {} already, the most that may; load it later", of_this,
                    package->manifest().name, state_->options.node);
    ROVE_CHECK(state_->start_worker(State::Duty::images));
    ROVE_TRY(Running running, state_->known.hold(*package));
    state_->loads_queue.push_back({std::move(running), std::move(done)});
    state_->lock.notify_all();
    return {};
}

}  // namespace rove::code
