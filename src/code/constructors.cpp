#include "code/constructors.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/transient.hpp"

namespace rove::code {

Status Constructors::run(PackageCode& package, Duty duty, const std::function<void()>& constructors) {
    if (lock_.has_stopped()) return tl::unexpected<Error>(lock_.why_cancelled());
    const std::string& name = package.store->manifest().name;
    if (running_ >= kConstructingMax)
        return fail(
            ErrorCode::overloaded,
            "package {} has constructors, and those of {} packages run on {} already, the most that may; call it "
            "later, or restart that node if they never end",
            name, running_, node_);
    ROVE_TRY(Thread* const mine, take_thread(name));
    if (const Status handed_over = workers_.hand_over(duty, package); !handed_over)
        return prefixed(handed_over.error(), fmt::format("package {} has constructors", name));
    ++running_;
    mine->runs = true;
    package.constructing = true;
    package.constructing_since = Clock::now();
    Status done = [&]() REQUIRES(lock_of<CodeCache>) {
        const Unlocked free(lock_.mutex());
        return run_in(*mine, package, constructors);
    }();
    --running_;
    mine->runs = false;
    threads_.remove_if([](const Thread& each) { return !each.runs && !each.thread; });
    if (lock_.has_stopped()) {
        package.destructors.drop();  // its code is about to be released
        return tl::unexpected<Error>(lock_.why_cancelled());
    }
    package.constructing = false;
    return done;
}

// The first free thread: mostly the same one, as natively.
Result<Constructors::Thread*> Constructors::take_thread(const std::string& package) {
    const auto is_free = [](const Thread& each) {
        return !each.runs && (!each.thread || (!each.thread->has_ended() && !each.thread->is_worn()));
    };
    if (const auto found = std::ranges::find_if(threads_, is_free); found != threads_.end()) return &*found;
    if (threads_.size() >= kConstructorThreadsMax)
        return fail(
            ErrorCode::overloaded,
            "package {} has constructors, and those of other packages have ended, or changed for good, {} threads "
            "of {}, which makes no more for them; restart that node",
            package, std::ranges::count_if(threads_, [](const Thread& each) { return !each.runs; }), node_);
    return &threads_.emplace_back();
}

Status Constructors::run_in(Thread& mine, PackageCode& package, const std::function<void()>& constructors) const try {
    const std::string there = fmt::format("{} on {}", package.store->manifest().name, node_);
    if (!mine.thread) {
        Result<std::unique_ptr<OwnThread>> started = OwnThread::start();
        if (!started)
            return fail(ErrorCode::overloaded,
                        "there is no thread for a constructor of package {} now ({}); call it later", there,
                        started.error().message());
        mine.thread = std::move(*started);
    }
    Status done = mine.thread->run(there, "constructor", constructors);
    if (done) {
        mine.thread->keep_objects();
        return done;
    }
    destroy(mine, package, there);
    return done;
} catch (const std::bad_alloc&) {  // no memory for the message
    package.destructors.drop();
    return tl::unexpected<Error>(no_memory());
}

// Nothing calls the package's code from now on, and it may be released: constructed objects are destroyed first, thread-local objects
// before statics.
void Constructors::destroy(Thread& mine, PackageCode& package, const std::string& there) {
    package.destructors.drop_functions();
    const pid_t thread = mine.thread->id();
    if (mine.thread->has_ended() && !mine.thread->keeps_objects()) mine.thread.reset();  // destroys its objects, too
    const std::function<void()> destructors = [&package, thread] {
        package.destructors.run_of_thread(thread);
        package.destructors.run();
    };
    const auto goes_on = [](const Status& each) { return !each && !is_transient(each.error()); };
    for (bool more = true; more && !package.destructors.empty();)
        more = goes_on(mine.thread && !mine.thread->has_ended() ? mine.thread->run(there, "destructor", destructors)
                                                                : in_own_thread(there, "destructor", destructors));
    package.destructors.drop();  // if no thread could be made for them
    if (mine.thread && mine.thread->is_worn() && !mine.thread->keeps_objects()) mine.thread.reset();
}

OwnThread* Constructors::thread(std::size_t number) const {
    const LockOf held(lock_.mutex());
    for (const Thread& each : threads_)
        if (!each.runs && each.thread && number-- == 0) return each.thread.get();
    return nullptr;
}

void Constructors::destroy_objects(const std::function<void(pid_t)>& destroy) {
    for (std::size_t number = 0; OwnThread* const each = thread(number); ++number) {
        const pid_t id = each->id();
        // Repeated if a destructor throws. If there is no memory, or the thread has ended, the calling thread destroys the rest.
        Status done = fail(ErrorCode::failed, "not begun");
        while (!each->has_ended() && !done && done.error().code() == ErrorCode::failed)
            done = each->run(node_, "destructor", [&destroy, id] { destroy(id); });
        if (!done) destroy(id);
    }
}

}  // namespace rove::code
