#include "code/lacking.hpp"

#include <algorithm>
#include <utility>

#include "base/cpu.hpp"
#include "base/library_statics.hpp"
#include "base/quoted.hpp"
#include "wire/image.hpp"

namespace rove::code {

namespace {

bool is_lacked(const ByteBuffer& lacks, std::size_t import) {
    return !lacks.empty() && (std::to_integer<unsigned>(lacks[import / 8]) >> import % 8 & 1U) != 0;
}

// The indices of those imports that the function needs and lacks.
std::vector<std::size_t> lacked(const Function& function, const ByteBuffer& lacks) {
    std::vector<std::size_t> imports;
    const wire::Manifest& manifest = function.package->store->manifest();
    if (!manifest.entry_needs_any(function.entry, lacks)) return imports;
    for (std::size_t import = 0; import < manifest.imports.size(); ++import)
        if (is_lacked(lacks, import) && manifest.entry_needs(function.entry, import)) imports.push_back(import);
    return imports;
}

void have(ByteBuffer& lacks, const std::vector<std::size_t>& imports) noexcept {
    for (const std::size_t import : imports)
        lacks[import / 8] &= ~std::byte{static_cast<unsigned char>(1U << import % 8)};
    if (std::ranges::all_of(lacks, [](std::byte each) { return each == std::byte{0}; })) lacks.clear();
}

}  // namespace

void Lacking::lack(Lacks& lacks, const wire::Manifest& manifest, std::size_t import) {
    lacks.resize(manifest.needs_row_bytes());
    lacks[import / 8] |= std::byte{static_cast<unsigned char>(1U << import % 8)};
}

void Lacking::lack_of_cpu(Lacks& lacks, const wire::Manifest& manifest) {
    for (std::size_t import = 0; import < manifest.imports.size(); ++import)
        if (!lacked_by_cpu(manifest.imports[import]).empty()) lack(lacks, manifest, import);
}

std::vector<void*> Lacking::find_imports(const PackageCode& package, const wire::Image& image, Lacks& lacks) const {
    const wire::Manifest& manifest = package.store->manifest();
    std::vector<void*> addresses(manifest.imports.size(), nullptr);
    std::vector<bool> looked_for(manifest.imports.size(), false);
    for (const wire::Relocation& each : image.relocations) {
        if (each.kind != wire::Relocation::Kind::import || looked_for[each.import]) continue;
        looked_for[each.import] = true;
        addresses[each.import] = symbols_.resolve(manifest.imports[each.import], package.scope);
        if (addresses[each.import] == nullptr) lack(lacks, manifest, each.import);
    }
    lack_of_cpu(lacks, manifest);
    return addresses;
}

Status Lacking::check(PackageCode& package, const Lacks& lacks) const {
    const wire::Manifest& manifest = package.store->manifest();
    std::vector<std::string_view> names;
    for (std::size_t import = 0; import < manifest.imports.size(); ++import)
        if (is_lacked(lacks, import) && manifest.whole_needs(import)) names.push_back(manifest.imports[import]);
    package.lacks_names = !names.empty();
    if (names.empty()) return {};
    return tl::unexpected<Error>(
        why_lacking(package, names, package.functions.size() == 1 ? package.functions.front()->name : manifest.name));
}

Error Lacking::why_lacking(const PackageCode& package, const std::vector<std::string_view>& names,
                           const std::string& of) const {
    for (const std::string_view name : names)
        if (const std::string lacked = lacked_by_cpu(name); !lacked.empty())
            return Error(ErrorCode::unsupported,
                         fmt::format("{} was compiled for a CPU with {}, which that of {} is not; build it without "
                                     "-march and -m options: a node compiles it for its own CPU",
                                     of, lacked, node_));
    if (names.front().starts_with("rove_"))
        return Error(
            ErrorCode::failed,
            fmt::format("no symbol {} for {} on {}; functions that travel cannot call the part of rove.h that is for "
                        "programs; if the name is in the part for functions, that node's Rove is too old",
                        quoted(names), of, node_));
    // Only if nothing else is missing: a library that cannot be opened has other names, too.
    if (std::ranges::all_of(names, [](std::string_view each) { return each.starts_with(wire::kThreadLocalPrefix); }))
        return Error(ErrorCode::failed,
                     fmt::format("{} on {} uses the thread-local variable '{}' {}", of, node_,
                                 names.front().substr(wire::kThreadLocalPrefix.size()), kThreadLocalOfALibrary));
    return Error(ErrorCode::failed,
                 fmt::format("no symbol {} for {} on {}; {}", quoted(names), of, node_, remedy(package)));
}

// The remedy for a name that does not exist.
std::string Lacking::remedy(const PackageCode& package) {
    if (!package.scope.left_out.empty()) return package.scope.left_out;
    return "load an interface that has it, or name its library when you build (a shared one: rove build --dep, DEPENDS "
           "of "
           "rove_add_executable; a static one: rove_embed)";
}

// Only entries that need the name reach these places, and they do not run: no thread reads the places while they are written.
Status Lacking::put_names(Function& function) const {
    PackageCode& package = *function.package;
    const std::uint64_t generation = symbols_.generation();
    if (function.names_seen == generation) return {};
    const std::vector<std::string>& imports = package.store->manifest().imports;
    const auto is_nowhere = [&](std::size_t import) {
        return is_cpu_import(imports[import]) ||
               symbols_.of_interfaces(imports[import], package.scope.as_of) == nullptr;
    };
    std::vector<std::size_t> of_image = lacked(function, package.image_lacks),
                             of_module = lacked(function, package.module_lacks);
    std::erase_if(of_image, [&](std::size_t import) REQUIRES(lock_of<CodeCache>) {
        return is_nowhere(import) || !package.image->can_put(import);
    });
    std::erase_if(of_module, [&](std::size_t import) REQUIRES(lock_of<CodeCache>) {
        return is_nowhere(import) || !package.module->can_put(imports[import]);  // if there is an image, the image runs
    });
    std::vector<std::pair<std::string_view, void*>> names;
    for (const std::size_t import : of_module)
        names.emplace_back(imports[import], symbols_.of_interfaces(imports[import], package.scope.as_of));
    if (!names.empty())
        if (const Status put = package.module->put(names); !put)
            return fail(put.error().code(), "{} on {}: {}; call it later", function.name, node_, put.error().message());
    for (const std::size_t import : of_image)
        package.image->put(import, symbols_.of_interfaces(imports[import], package.scope.as_of));
    have(package.module_lacks, of_module);
    have(package.image_lacks, of_image);
    function.names_seen = generation;
    package.publish();
    return {};
}

// The error for a function whose package is loaded.
Error Lacking::why_no_entry(const Function& function) const {
    const std::uint64_t generation = symbols_.generation();
    if (!function.why_none || function.why_none->first != generation)
        function.why_none.emplace(generation, [&]() REQUIRES(lock_of<CodeCache>) -> Error {
            const PackageCode& package = *function.package;
            const std::vector<std::string>& imports = package.store->manifest().imports;
            const std::vector<std::size_t> lacking =
                lacked(function, package.image ? package.image_lacks : package.module_lacks);
            if (lacking.empty())
                return Error(ErrorCode::failed,
                             fmt::format("{} on {}: its package defines no such entry", function.name, node_));
            std::vector<std::string_view> names, too_late;
            for (const std::size_t import : lacking) {
                const bool may_come =
                    package.image ? package.image->can_put(import) : package.module->can_put(imports[import]);
                (may_come ? names : too_late).push_back(imports[import]);
            }
            if (too_late.empty()) return why_lacking(package, names, function.name);
            return Error(
                ErrorCode::failed,
                fmt::format("no symbol '{}' for {} on {}; load an interface that has it before the first call of its "
                            "package: its code takes the name only while it is linked",
                            too_late.front(), function.name, node_));
        }());
    return function.why_none->second;
}

}  // namespace rove::code
