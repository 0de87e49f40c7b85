#include "code/known.hpp"

#include <new>
#include <utility>

#include "package/bundle.hpp"

namespace rove::code {

Function* Known::find(const FunctionId& id) const {
    const auto known = functions_.find(id);
    return known != functions_.end() ? known->second : nullptr;
}

Function* Known::find(std::string_view package, std::string_view entry) const {
    const auto named = newest_.find(std::string(package));
    if (named == newest_.end()) return nullptr;
    for (const auto& function : named->second->functions)
        if (std::string_view(function->name).substr(function->name.rfind(':') + 1) == entry) return function.get();
    return nullptr;
}

Function* Known::find(EntryPoint loaded) const {
    const auto known = by_address_.find(loaded);
    return known != by_address_.end() ? known->second : nullptr;
}

PackageCode* Known::package(const Digest& digest) const {
    const auto known = packages_.find(digest);
    return known != packages_.end() ? known->second.get() : nullptr;
}

Result<Running> Known::hold(const PackageStore& store) const {
    PackageCode* const known = package(store.digest());
    if (known == nullptr) return fail(ErrorCode::invalid, "package {} is not known", store.manifest().name);
    return Running(*known);
}

PackageCode& Known::add(std::unique_ptr<PackageCode> made) {
    PackageCode& package = *made;
    package.number = packages_ever_++;
    // Done before anything that would have to be undone.
    const auto place = packages_.try_emplace(package.store->digest()).first;
    try {
        number_functions(package);
        for (const auto& function : package.functions) functions_[function->id] = function.get();
        newest_[package.store->manifest().name] = &package;
    } catch (const std::bad_alloc&) {
        take_back_names(package);
        packages_.erase(place);
        throw;
    }
    place->second = std::move(made);
    return package;
}

Function* Known::add(const FunctionId& id, std::string name, EntryPoint entry) {
    auto function = std::make_unique<Function>();
    function->id = id;
    function->name = std::move(name);
    function->ran.store(RanAs::resident, std::memory_order_relaxed);
    function->target.store(entry, std::memory_order_release);
    Function& added = *residents_.emplace_back(std::move(function));
    try {
        functions_.try_emplace(id, &added);
        by_address_.emplace(entry, &added);
    } catch (const std::bad_alloc&) {
        functions_.erase(id);
        residents_.pop_back();
        throw;
    }
    // Done last, because an index that was taken would be lost if there were no memory for the rest.
    const std::uint32_t index = take_index();
    added.handle = handle_of(index);
    table_[index].store(&added, std::memory_order_release);
    return &added;
}

void Known::note_resident(PackageCode& package) {
    newest_resident_[package.store->manifest().name] = &package;
}

std::uint32_t Known::take_index() {
    if (free_indices_.empty()) return indices_used_++;
    const std::uint32_t index = free_indices_.front();
    free_indices_.pop_front();
    return index;
}

void Known::number_functions(PackageCode& package) {
    const wire::Manifest& manifest = package.store->manifest();
    package.functions.reserve(manifest.entries.size());  // so that no allocation fails after an index has been taken
    for (std::size_t i = 0; i < manifest.entries.size(); ++i) {
        auto function = std::make_unique<Function>();
        function->id = package.store->function_ids()[i];
        // The readable name of a function, which the entry of a program's bundle contains.
        const std::string& entry = manifest.entries[i];
        std::string name = Bundle::name_in(entry);
        function->name = !name.empty() ? std::move(name) : manifest.name + ":" + entry;
        function->entry = static_cast<std::uint32_t>(i);
        function->package = &package;
        const std::uint32_t index = take_index();
        function->handle = handle_of(index);
        package.functions.push_back(std::move(function));
        table_[index].store(package.functions.back().get(), std::memory_order_release);
    }
}

std::unique_ptr<PackageCode> Known::forget(PackageCode& package) {
    take_back_names(package);
    return std::move(packages_.extract(package.store->digest()).mapped());
}

void Known::take_back_names(PackageCode& package) noexcept {
    for (const auto& function : package.functions) {
        free_index(function->handle & 0xFFFFU);
        const auto known = functions_.find(function->id);
        if (known != functions_.end() && known->second == function.get()) functions_.erase(known);
    }
    const std::string& name = package.store->manifest().name;
    const auto named = newest_.find(name);
    if (named == newest_.end() || named->second != &package) return;
    if (const auto resident = newest_resident_.find(name);
        resident != newest_resident_.end() && resident->second != &package)
        named->second = resident->second;
    else
        newest_.erase(named);
}

void Known::free_index(std::uint32_t index) noexcept {
    table_[index].store(nullptr, std::memory_order_release);
    // An index whose generations are used up is not assigned again, so that an old handle never names another function.
    if (++generations_[index] % kGenerationsMax == 0) return;
    try {
        free_indices_.push_back(index);
    } catch (const std::bad_alloc&) {  // neither is one for which there is no memory now
    }
}

void Known::take_back_entries(PackageCode& package) noexcept {
    for (const auto& function : package.functions) {
        for (const EntryPoint entry : {function->image, function->compiled})
            if (const auto known = by_address_.find(entry);
                known != by_address_.end() && known->second->package == &package)
                by_address_.erase(known);
        function->image = function->compiled = nullptr;
        function->names_seen = 0;
    }
}

}  // namespace rove::code
