#include "code/budgets.hpp"

#include <functional>
#include <string>
#include <utility>

#include "code/known.hpp"

namespace rove::code {

namespace {

// The largest of the packages that use up a budget, for the message to a package that finds no room.
constexpr std::size_t kHoldersNamed = 3;

template <typename Bytes>
std::string largest(std::vector<PackageCode*> holders, const Bytes& bytes_of) REQUIRES(lock_of<CodeCache>) {
    const std::size_t named = std::min(kHoldersNamed, holders.size());
    std::partial_sort(holders.begin(), holders.begin() + static_cast<std::ptrdiff_t>(named), holders.end(),
                      [&](PackageCode* a, PackageCode* b)
                          REQUIRES(lock_of<CodeCache>) { return bytes_of(*a) > bytes_of(*b); });
    std::string text;
    for (std::size_t i = 0; i < named; ++i)
        text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", holders[i]->store->manifest().name, bytes_of(*holders[i]));
    if (holders.size() > named) text += fmt::format(" and {} more", holders.size() - named);
    return text.empty() ? "none" : text;
}

// The memory of the names that the package's code offers to other code.
std::size_t names_held(const PackageCode& package) REQUIRES(lock_of<CodeCache>) {
    if (package.interface) return package.store->manifest().exports.size() * kInterfaceNameBytes;
    return package.exported.size() * kInterfaceNameBytes / 2;
}

}  // namespace

void Budgets::make_places(std::size_t packages) {
    for (auto* list : {&keepers_, &pinned_})
        if (list->capacity() <= packages) list->reserve(2 * packages + 1);
}

void Budgets::uncount(PackageCode& package) {
    const PackageCode::Counted was = std::exchange(package.counted, {});
    manifest_bytes_ -= was.manifest;
    sum(was.of_slices()) -= was.slices;
    sum(was.budget) -= was.code;
    count_staying(was, {});
    std::erase(pinned_, &package);
    std::erase(keepers_, &package);
    static_bytes_ -= package.static_bytes();
    candidates_.leave_out(package);
}

void Budgets::count(PackageCode& package) noexcept {
    const PackageCode::Counted now{.manifest = package.resident ? 0
                                                                : package.store->manifest_bytes_held() +
                                                                      package.functions.size() * kFunctionBytes +
                                                                      names_held(package),
                                   .slices = package.store->slice_bytes_held(),
                                   .code = package.loaded_bytes() + package.reserved.code,
                                   .budget = package.budget(),
                                   .stays = package.stays(),
                                   .functions = package.functions.size()};
    const PackageCode::Counted was = std::exchange(package.counted, now);
    manifest_bytes_ = manifest_bytes_ - was.manifest + now.manifest;
    sum(was.of_slices()) -= was.slices;
    sum(was.budget) -= was.code;
    sum(now.of_slices()) += now.slices;
    sum(now.budget) += now.code;
    count_staying(was, now);
    if (was.budget != now.budget) {
        if (was.budget == Budget::pinned) std::erase(pinned_, &package);
        if (now.budget == Budget::pinned) pinned_.push_back(&package);
    }
    candidates_.list(package);
    uses_.set_over_budget(is_over());
}

void Budgets::count_staying(const PackageCode::Counted& was, const PackageCode::Counted& now) noexcept {
    const auto add = [this](const PackageCode::Counted& counted, auto&& to) REQUIRES(lock_of<CodeCache>) {
        if (!counted.stays) return;
        staying_.packages = to(staying_.packages, 1);
        staying_.functions = to(staying_.functions, counted.functions);
        staying_.manifest_bytes = to(staying_.manifest_bytes, counted.manifest);
    };
    add(was, std::minus<std::size_t>());
    add(now, std::plus<std::size_t>());
}

void Budgets::reserve(PackageCode& package, std::size_t code, std::size_t statics) {
    const bool stays = package.pinned || package.interface;
    package.reserved = {.code = stays && !package.resident ? code : 0, .statics = statics};
    static_bytes_ += statics;
    if (package.reserved.code > 0) count(package);
}

void Budgets::give_back(PackageCode& package) noexcept {
    const PackageCode::Reserved was = std::exchange(package.reserved, {});
    static_bytes_ -= was.statics;
    if (was.code > 0) count(package);
}

void Budgets::drop_statics(PackageCode& package) {
    static_bytes_ -= package.static_bytes();
    std::erase(keepers_, &package);
    package.statics.clear();
    package.data.reset();
    count(package);
}

// Whether there is room for code that cannot be evicted. It has a budget of its own, and never evicts other code. To be called before such
// code is loaded or compiled, also before a second form of a loaded package is, and before a loaded package becomes an interface.
Status Budgets::check_pinned(const PackageCode& package, std::size_t more) const {
    if (package.resident) return {};
    const std::size_t bytes = package.loaded_bytes() + more;
    const std::size_t counted = package.counted.budget == Budget::pinned ? package.counted.code : 0;
    if (held(Budget::pinned) - counted + bytes <= pinned_bytes_max()) return {};
    return fail(
        ErrorCode::overloaded,
        "package {} takes {} bytes of code that cannot be evicted (it is pinned, or an interface), and {} has {} of at "
        "most {} (half of its --code-budget, or 1 MiB): {}; give that node a larger one, or restart it",
        package.store->manifest().name, bytes, options_.node, held(Budget::pinned), pinned_bytes_max(),
        largest(pinned_, [](const PackageCode& each) REQUIRES(lock_of<CodeCache>) { return each.counted.code; }));
}

Status Budgets::check_evictable(const PackageCode& package, std::size_t bytes) const {
    const std::size_t most = std::max(options_.code_bytes_max, kAwaitedBytesMax);
    if (package.resident || bytes <= most) return {};
    return fail(ErrorCode::overloaded,
                "package {} takes {} bytes of code, and {} keeps {} at most (its --code-budget, or 128 MiB); give that "
                "node a larger one, or divide the package",
                package.store->manifest().name, bytes, options_.node, most);
}

// The statics of a function that was called are its state; they are kept for as long as the node lives.
Status Budgets::check_statics(const PackageCode& package, std::size_t bytes) const {
    if (static_bytes_ + bytes <= options_.static_bytes_max) return {};
    return fail(
        ErrorCode::overloaded,
        "package {} has {} bytes of statics, and {} keeps {} of at most {} already: {}; restart that node to drop them",
        package.store->manifest().name, bytes, options_.node, static_bytes_, options_.static_bytes_max,
        largest(keepers_, [](const PackageCode& each) REQUIRES(lock_of<CodeCache>) { return each.static_bytes(); }));
}

bool Budgets::fits_among_staying(const PackageCode& package, std::size_t more_bytes) const {
    const bool counted = package.counted.stays;
    const std::size_t also = counted ? 0 : 1;
    return staying_.packages + also <= options_.packages_max - options_.packages_max / 2 &&
           staying_.functions + also * package.functions.size() <= kFunctionsMax / 2 &&
           staying_.manifest_bytes + also * package.counted.manifest + more_bytes <= manifest_bytes_max() / 2;
}

Error Budgets::why_it_cannot_stay(const PackageCode& package) const {
    return {ErrorCode::overloaded,
            fmt::format(
                "package {} is to stay for as long as {} runs (it has statics or constructors, is pinned, or is an "
                "interface), and {} "
                "packages of {} functions with manifests of {} bytes do so already, of at most {}, {} and {}; restart "
                "that node to drop them",
                package.store->manifest().name, options_.node, staying_.packages, staying_.functions,
                staying_.manifest_bytes, (options_.packages_max + 1) / 2, kFunctionsMax / 2, manifest_bytes_max() / 2)};
}

}  // namespace rove::code
