#include "toolchain/build.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "base/library_statics.hpp"
#include "base/targets.hpp"
#include "bitcode/compiler.hpp"
#include "package/pack.hpp"
#include "package/package.hpp"
#include "rove/rove.h"
#include "toolchain/compile.hpp"
#include "toolchain/files.hpp"
#include "toolchain/header.hpp"
#include "toolchain/image.hpp"
#include "toolchain/notes.hpp"
#include "wire/image.hpp"

namespace rove::toolchain {
namespace {

// The result of the compilation for one target.
struct Built {
    std::string triple;
    bitcode::Prepared prepared;
    Result<wire::Image> image = fail(ErrorCode::unsupported, "not made");
};

bool is_assembly(const std::filesystem::path& path) {
    return path.extension() == ".S" || path.extension() == ".s" || path.extension() == ".asm";
}

// Sources under endings that rove does not compile: the compiler would, or did so to make them.
bool is_other_source(const std::filesystem::path& path) {
    constexpr std::array<std::string_view, 7> kEndings{".C", ".c++", ".cp", ".CPP", ".cppm", ".i", ".ii"};
    return std::ranges::find(kEndings, path.extension().string()) != kEndings.end();
}

bool holds_sources(const std::filesystem::path& folder) {
    constexpr int kDepthMax = 4;  // it may be a whole file system
    std::error_code error;
    std::filesystem::recursive_directory_iterator each(folder, error), end;
    for (; !error && each != end; each.increment(error)) {
        std::error_code ignored;
        if (is_source(each->path()) && each->is_regular_file(ignored)) return true;
        if (each.depth() >= kDepthMax) each.disable_recursion_pending();
    }
    return false;
}

Result<std::vector<std::filesystem::path>> sources_of(const std::filesystem::path& source,
                                                      const std::function<void(std::string_view)>& warn) {
    std::error_code error;
    if (std::filesystem::is_regular_file(source, error)) {
        if (!is_source(source))
            return fail(ErrorCode::invalid, "{} is no C or C++ source (.c, .cpp, .cc, .cxx)", source.string());
        return std::vector{source};
    }
    if (!std::filesystem::is_directory(source, error))
        return fail(ErrorCode::invalid, "there is no source {}", source.string());
    std::vector<std::filesystem::path> sources;
    for (const auto& each : std::filesystem::directory_iterator(source, error)) {
        if (each.is_regular_file() && is_source(each.path())) sources.push_back(each.path());
        if (warn && each.is_regular_file() && is_assembly(each.path()))
            warn(fmt::format(
                "{} is left out: assembly has no bitcode; where the sources can do without it, tell them so",
                each.path().string()));
    }
    for (const auto& each : std::filesystem::directory_iterator(source, error)) {
        if (!warn) break;
        if (each.is_regular_file() && is_other_source(each.path()))
            warn(fmt::format("{} is left out: sources end in .c, .cpp, .cc or .cxx", each.path().string()));
        if (each.is_directory() && holds_sources(each.path()))
            warn(fmt::format("{} is left out: the sources of a package are in one folder", each.path().string()));
    }
    std::sort(sources.begin(), sources.end());
    if (sources.empty()) return fail(ErrorCode::invalid, "the folder {} holds no C or C++ sources", source.string());
    return sources;
}

Status check(const BuildOptions& options) {
    for (const std::string& soname : options.dependencies)
        if (soname.empty() || soname.find('/') != std::string::npos)
            return fail(ErrorCode::invalid, "dependency '{}': name a library by its bare soname, as libz.so.1", soname);
    for (const std::string& triple : options.targets)
        if (target_of(triple) == nullptr)
            return fail(ErrorCode::invalid, "target '{}': there are {}", triple,
                        fmt::join(kTargets | std::views::transform(&Target::triple), " and "));
    return {};
}

// A function is called by PACKAGE:FUNCTION.
Status check_name(const std::string& name) {
    if (wire::is_name(name) && name.find_first_of(":/\"\\") == std::string::npos) return {};
    std::string shown = name.substr(0, 80);
    std::ranges::replace_if(shown, [](char c) { return c < 0x20 || c > 0x7E; }, '?');
    return fail(
        ErrorCode::invalid,
        "'{}' cannot be a package's name, which has 1 to {} characters of printable ASCII and neither spaces nor "
        "any of : / \" \\; give another by --name",
        shown, wire::kNameBytesMax);
}

// Refuses to overwrite a source, as compilers do.
Status check_not_a_source(const std::filesystem::path& output, const std::vector<std::filesystem::path>& sources) {
    std::error_code ignored;
    for (const auto& source : sources)
        if (std::filesystem::equivalent(output, source, ignored))
            return fail(ErrorCode::invalid,
                        "{} is a source of the package, and would be overwritten; name another file", output.string());
    return {};
}

Result<Built> build_target(const BuildOptions& options, const std::vector<std::filesystem::path>& sources,
                           const std::string& triple, const std::filesystem::path& folder) {
    bitcode::PrepareRequest request{.triple = triple, .modules = {}, .interface = options.interface, .for_nodes = true};
    for (const auto& source : sources) {
        ROVE_TRY(ByteBuffer module, compile({source, triple, options.compiler_flags, folder}));
        request.modules.push_back(std::move(module));
        request.names.push_back(source.string());
    }
    ROVE_TRY(bitcode::Compiler * compiler, bitcode::compiler());
    Result<bitcode::Prepared> prepared = compiler->prepare(request);
    if (!prepared) return prefixed(prepared.error(), options.source.string());
    return Built{triple, std::move(*prepared)};
}

// Appends those names that are not in the list yet: the list is for all targets, in the order of the first one.
void add_names(std::vector<std::string>& names, const std::vector<std::string>& more) {
    for (const std::string& name : more)
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

Status add_slices(const BuildOptions& options, const Built& built, wire::Manifest& manifest,
                  std::vector<ByteBuffer>& stored) {
    const auto add = [&](Forms form, ByteBuffer raw) -> Status {
        if (raw.size() > wire::kSliceBytesMax)
            return fail(ErrorCode::invalid, "the {} for {} has {} bytes, over the limit of {}", wire::to_string(form),
                        built.triple, raw.size(), wire::kSliceBytesMax);
        manifest.slices.push_back(make_slice(built.triple, form, std::move(raw), stored.emplace_back()));
        return {};
    };
    if (built.image) {
        ROVE_CHECK(add(Forms::image, wire::encode(*built.image)));
    } else if (options.warn) {
        options.warn(fmt::format("no image for {}: {}", built.triple, without_image(built.image.error().message())));
    }
    return add(Forms::bitcode, built.prepared.bitcode);
}

// Some atomic operations are calls of a library that a node loads only if the package names it.
void warn_of_atomics(const BuildOptions& options, const std::vector<std::string>& imports) {
    const auto call = std::find_if(imports.begin(), imports.end(), [](const std::string& name) {
        return name.starts_with("__atomic_") || name.starts_with("atomic_flag_") || name == "atomic_thread_fence" ||
               name == "atomic_signal_fence";
    });
    const bool named = std::any_of(options.dependencies.begin(), options.dependencies.end(),
                                   [](const std::string& soname) { return soname.starts_with("libatomic."); });
    if (!options.warn || call == imports.end() || named) return;
    options.warn(
        fmt::format("it calls {}, which is libatomic's: add --dep libatomic.so.1, or its calls fail on nodes that have "
                    "no such name",
                    *call));
}

// A node's libraries have native thread-local variables, which code that travels cannot reach (bitcode/package/thread_locals.hpp).
void warn_of_thread_locals(const BuildOptions& options, const std::vector<std::string>& imports) {
    if (!options.warn) return;
    for (std::string_view name : imports) {
        if (!name.starts_with(wire::kThreadLocalPrefix)) continue;
        name.remove_prefix(wire::kThreadLocalPrefix.size());
        if (is_library_thread_local(name)) continue;
        options.warn(
            fmt::format("it uses the thread-local variable {} of a library, which code that travels reaches only if "
                        "the library was "
                        "compiled with -femulated-tls; let a function of that library return its address",
                        name));
    }
}

}  // namespace

Status build(const BuildOptions& options) {
    ROVE_CHECK(check(options));
    ROVE_TRY(const auto sources, sources_of(options.source, options.warn));
    ROVE_CHECK(check_not_a_source(options.output, sources));
    if (!options.header.empty()) ROVE_CHECK(check_not_a_source(options.header, sources));
    ROVE_TRY(const TemporaryFolder folder, TemporaryFolder::make());
    std::vector<std::string> targets = options.targets;
    if (targets.empty())
        for (const Target& each : kTargets) targets.emplace_back(each.triple);

    wire::Manifest manifest;
    const std::filesystem::path stem = std::filesystem::absolute(options.source).lexically_normal();
    manifest.name =
        !options.name.empty() ? options.name : (stem.has_filename() ? stem : stem.parent_path()).stem().string();
    ROVE_CHECK(check_name(manifest.name));
    manifest.abi = ROVE_ABI_VERSION;
    manifest.interface = options.interface;
    manifest.dependencies = options.dependencies;
    std::vector<std::vector<std::string>> needs;
    std::vector<Built> all;
    std::set<std::string> replaced;
    for (const std::string& triple : targets) {
        ROVE_TRY(Built built, build_target(options, sources, triple, folder.path()));
        if (!all.empty() && (built.prepared.entries != all.front().prepared.entries ||
                             built.prepared.exports != all.front().prepared.exports))
            return fail(ErrorCode::invalid, "{} has other entries or exports for {} than for {}",
                        options.source.string(), triple, all.front().triple);
        add_names(manifest.imports, built.prepared.imports);
        needs.resize(built.prepared.needs.size());
        for (std::size_t row = 0; row < needs.size(); ++row) add_names(needs[row], built.prepared.needs[row]);
        manifest.pinned = manifest.pinned || built.prepared.pinned;
        replaced.insert(built.prepared.replaced.begin(), built.prepared.replaced.end());
        all.push_back(std::move(built));
    }
    warn_of_replaced(options.warn, replaced, "this package");
    warn_of_atomics(options, manifest.imports);
    warn_of_thread_locals(options, manifest.imports);
    manifest.entries = all.front().prepared.entries;
    manifest.exports = all.front().prepared.exports;
    if (manifest.exports.empty() && options.interface)
        return fail(ErrorCode::invalid,
                    "{} exports no name: an interface offers its functions and data that are not static",
                    options.source.string());

    ROVE_TRY(bitcode::Compiler * compiler, bitcode::compiler());
    if (!set_needs(manifest, needs) && options.warn) options.warn(kNeedsOfAll);
    std::vector<ByteBuffer> stored;
    for (Built& built : all) {
        built.image = built.prepared.image_obstacle.empty()
                          ? link_image(*compiler, {built.prepared.object, folder.path(), manifest.entries,
                                                   manifest.exports, manifest.imports})
                          : fail(ErrorCode::unsupported, "{}", built.prepared.image_obstacle);
        // `unsupported` means that this code has no image: a warning. Any other error ends the build.
        if (!built.image && built.image.error().code() != ErrorCode::unsupported)
            return tl::unexpected<Error>(built.image.error());
        ROVE_CHECK(add_slices(options, built, manifest, stored));
    }
    Result<ByteBuffer> packed = pack(manifest, stored);
    if (!packed) return prefixed(packed.error(), options.source.string());
    const ByteBuffer file = std::move(*packed);
    ROVE_TRY(const std::shared_ptr<PackageStore> package, PackageStore::parse(file));
    if (!options.header.empty()) {
        const std::string text = header_of(*package);
        ROVE_CHECK(write_file(options.header, as_bytes(text)));
    }
    // Written last, so that after any error the old package still exists, and `make` builds again.
    return write_file(options.output, file);
}

}  // namespace rove::toolchain
