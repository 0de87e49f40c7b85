#include "code/constructors.hpp"

#include "code/own_thread.hpp"

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
    if (const Status handed_over = workers_.hand_over(duty, package); !handed_over)
        return prefixed(handed_over.error(), fmt::format("package {} has constructors", name));
    ++running_;
    package.constructing = true;
    Status done = [&]() REQUIRES(lock_of<CodeCache>) {
        const UnlockedOf free(lock_.mutex());
        const std::string there = fmt::format("{} on {}", name, node_);
        Status constructed = in_own_thread(there, "constructor", constructors);
        // Its code is about to be released: what has been constructed is destroyed first.
        const auto goes_on = [](const Status& each) { return !each && each.error().code() != ErrorCode::overloaded; };
        for (bool more = goes_on(constructed); more && !package.destructors.empty();)
            more = goes_on(in_own_thread(there, "destructor", [&] { package.destructors.run(); }));
        if (!constructed) package.destructors.drop();  // there was no thread for them
        return constructed;
    }();
    --running_;
    if (lock_.has_stopped()) return tl::unexpected<Error>(lock_.why_cancelled());
    package.constructing = false;
    return done;
}

}  // namespace rove::code
