#include "code/constructors.hpp"

#include <algorithm>
#include <utility>

#include "code/own_thread.hpp"
#include "wire/image.hpp"

namespace rove::code {

namespace {

// The constructors of the package, and functions of the others that it is linked to, which it can reach by none but its own code.
bool may_have_thread_locals(const PackageCode& package) {
    const std::vector<std::string>& imports = package.store->manifest().imports;
    return std::ranges::find(imports, wire::kGetThreadLocal) != imports.end();
}

}  // namespace

Status Constructors::run(PackageCode& package, Duty duty, const std::function<void()>& constructors) {
    if (lock_.has_stopped()) return tl::unexpected<Error>(lock_.why_cancelled());
    const std::string& name = package.store->manifest().name;
    if (running_ >= kConstructingMax)
        return fail(
            ErrorCode::overloaded,
            "package {} has constructors, and those of {} packages run on {} already, the most that may; call it "
            "later, or restart that node if they never end",
            name, running_, node_);
    if (may_have_thread_locals(package) && staying_ >= kStayingMax)
        return fail(
            ErrorCode::overloaded,
            "package {} has constructors and thread-local variables, and the threads of {} such packages stay on {} "
            "already, the most that may; restart that node",
            name, staying_, node_);
    if (const Status handed_over = workers_.hand_over(duty, package); !handed_over)
        return prefixed(handed_over.error(), fmt::format("package {} has constructors", name));
    ++running_;
    package.constructing = true;
    std::unique_ptr<OwnThread> thread;
    Status done = [&]() REQUIRES(lock_of<CodeCache>) {
        const UnlockedOf free(lock_.mutex());
        Status constructed = run_in(thread, package, constructors);
        if (!constructed || !may_have_thread_locals(package)) thread.reset();
        return constructed;
    }();
    --running_;
    if (thread) ++staying_;
    package.constructed_by = std::move(thread);
    if (lock_.has_stopped()) return tl::unexpected<Error>(lock_.why_cancelled());
    package.constructing = false;
    return done;
}

Status Constructors::run_in(std::unique_ptr<OwnThread>& thread, PackageCode& package,
                            const std::function<void()>& constructors) const {
    const std::string there = fmt::format("{} on {}", package.store->manifest().name, node_);
    ROVE_TRY(thread, OwnThread::run(there, "constructor", constructors));
    Status done = thread->done();
    if (done) return done;
    // Its code is about to be released: what has been constructed is destroyed first.
    thread->destroy_objects();
    const auto goes_on = [](const Status& each) { return !each && each.error().code() != ErrorCode::overloaded; };
    for (bool more = true; more && !package.destructors.empty();)
        more = goes_on(in_own_thread(there, "destructor", [&] { package.destructors.run(); }));
    package.destructors.drop();  // there was no thread for them
    return done;
}

}  // namespace rove::code
