#include "code/loads.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace rove::code {

Status Loads::queue(const PackageStore& package, Done done, NodeId asker) {
    if (queue_.size() >= CodeCache::kLoadsMax)
        return fail(ErrorCode::overloaded,
                    "{} packages wait to be loaded on {} already, the most there may; load {} later",
                    CodeCache::kLoadsMax, options_.node, package.manifest().name);
    const auto of_asker =
        std::count_if(queue_.begin(), queue_.end(), [asker](const auto& load) { return load.asker == asker; });
    if (asker != kNoNode && static_cast<std::size_t>(of_asker) >= CodeCache::kLoadsOfNodeMax)
        return fail(ErrorCode::overloaded,
                    "{} packages that one node wants loaded wait on {} already, the most that may; load {} later",
                    of_asker, options_.node, package.manifest().name);
    const auto of_this = std::count_if(queue_.begin(), queue_.end(), [&](const auto& load) {
        return load.running.package().store->digest() == package.digest();
    });
    if (static_cast<std::size_t>(of_this) >= CodeCache::kLoadsOfPackageMax)
        return fail(ErrorCode::overloaded,
                    "{} loads of package {} wait on {} already, the most that may; load it later", of_this,
                    package.manifest().name, options_.node);
    ROVE_CHECK(workers_.start(Duty::images));
    ROVE_TRY(Running running, known_.hold(package));
    tiers_.add_asker(running.package(), asker);  // the package may be in the compiler's queue already
    queue_.push_back({std::move(running), std::move(done), asker});
    lock_.notify_all();
    return {};
}

bool Loads::do_next() {
    const auto next = std::find_if(queue_.begin(), queue_.end(), [](const Load& load) REQUIRES(lock_of<CodeCache>) {
        return !load.running.package().is_under_way();
    });
    if (next == queue_.end()) return false;
    Result<std::optional<Awaited>> awaited = lock_.or_error(
        next->running.package(),
        [&]() REQUIRES(lock_of<CodeCache>) { return tiers_.make_ready(next->running.package(), next->asker); });
    if (awaited && *awaited == Awaited::loading) return true;  // it is being loaded now
    Load load = std::move(*next);
    PackageCode& package = load.running.package();
    queue_.erase(next);
    workers_.begin_work();
    const Result<LoadReport> loaded = lock_.or_error(package, [&]() REQUIRES(lock_of<CodeCache>) -> Result<LoadReport> {
        const wire::Manifest& manifest = package.store->manifest();
        if (!awaited) return tl::unexpected<Error>(std::move(awaited.error()));
        if (*awaited == Awaited::code) return tl::unexpected<Error>(tiers_.why_incomplete(*package.store));
        return manifest.interface ? interfaces_.link(package) : LoadReport{};
    });
    const Digest digest = package.store->digest();
    {
        const Running over = std::move(load.running);
    }
    workers_.end_work(digest);
    const Result<LoadReport> without_memory = tl::unexpected<Error>(no_memory());
    const auto tell = [&](const Result<LoadReport>& answer) {
        try {
            load.done(answer);
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    };
    // An error takes less memory than a report.
    lock_.call_back([&] { (void)(tell(loaded) || tell(without_memory)); });
    return true;
}

}  // namespace rove::code
