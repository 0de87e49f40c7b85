#include "toolchain/bundle.hpp"

#include "code/cache.hpp"
#include "code/own_code.hpp"
#include "package/bundle.hpp"
#include "package/pack.hpp"
#include "toolchain/files.hpp"
#include "toolchain/image.hpp"
#include "toolchain/process.hpp"

namespace rove::toolchain {
namespace {

// Image and bitcode for this machine's kind.
Result<ByteBuffer> make_package(code::jit::Engine& engine, const code::jit::Extracted& extracted,
                                const std::filesystem::path& folder) {
    const std::string triple(code::host_triple());
    ROVE_TRY(const code::jit::Prepared prepared,
             engine.prepare(
                 {.triple = triple, .modules = {extracted.bitcode}, .interface = false, .entries = extracted.entries}));
    wire::Manifest manifest = code::manifest_of(extracted, prepared);
    std::vector<ByteBuffer> stored;
    if (prepared.image_obstacle.empty()) {
        Result<wire::Image> image =
            link_image({prepared.object, folder, manifest.entries, manifest.exports, manifest.imports});
        if (!image && image.error().message().find("is not installed") != std::string::npos)
            return tl::unexpected<Error>(image.error());
        if (image)
            manifest.slices.push_back(
                make_slice(triple, wire::Form::image, wire::encode(*image), stored.emplace_back()));
    }
    manifest.slices.push_back(make_slice(triple, wire::Form::bitcode, prepared.bitcode, stored.emplace_back()));
    ByteBuffer file = PackageStore::serialize(manifest, stored);
    ROVE_CHECK(PackageStore::parse(file));  // what nobody could open is not written
    return file;
}

bool has_image(Bytes package) {
    const auto store = PackageStore::parse(package);
    return store && (*store)->slice_index(code::host_triple(), wire::Form::image).has_value();
}

}  // namespace

Result<BundleReport> bundle(const BundleOptions& options) {
    const std::string program = options.program.string();
    ROVE_TRY(const ByteBuffer bitcode, read_section(program, ".llvmbc"));
    if (bitcode.empty())
        return fail(ErrorCode::invalid,
                    "{} carries no bitcode of itself: compile it with clang and -Xclang -fembed-bitcode=all, as "
                    "rove_add_executable() does",
                    program);
    ROVE_TRY(code::jit::Engine * engine, code::jit::engine());
    ROVE_TRY(const std::vector<code::jit::Extracted> all,
             engine->extract({.program = program, .bitcode = bitcode, .only = {}}));
    ROVE_TRY(const TemporaryFolder folder, TemporaryFolder::make());
    const PackageCache cache;
    BundleReport report;
    std::vector<Bundle::Entry> entries;
    for (const code::jit::Extracted& extracted : all) {
        ByteBuffer package;
        if (extracted.obstacle.empty()) {
            const Digest made_of = PackageCache::key_of({"both", ROVE_BUILD, as_text(extracted.bitcode)});
            package = cache.find(made_of);
            if (!package.empty()) report.from_cache += extracted.keys.size();
            if (package.empty()) {
                Result<ByteBuffer> made = make_package(*engine, extracted, folder.path());
                if (!made) return prefixed(made.error(), extracted.name);
                package = std::move(*made);
                cache.keep(made_of, package);
            }
            report.functions += extracted.keys.size();
            if (has_image(package)) report.with_image += extracted.keys.size();
        } else {
            report.stay += extracted.keys.size();
            if (options.warn) options.warn(fmt::format("{} cannot be sent: {}", extracted.name, extracted.obstacle));
        }
        for (const std::string& key : extracted.keys)
            entries.push_back({.key = key, .package = package, .why_not = extracted.obstacle});
    }
    const std::filesystem::path section = folder.path() / "bundle";
    ROVE_CHECK(write_file(section, Bundle::encode(entries)));
    const std::string name(Bundle::kSection);
    std::vector<std::string> command{"objcopy",
                                     "--remove-section",
                                     name,
                                     "--add-section",
                                     name + "=" + section.string(),
                                     "--set-section-flags",
                                     name + "=readonly,noload"};
    if (!options.keep_bitcode)
        command.insert(command.end(), {"--remove-section", ".llvmbc", "--remove-section", ".llvmcmd"});
    command.push_back(program);
    ROVE_TRY(const Finished finished, run(command, "binutils"));
    if (finished.status != 0)
        return fail(ErrorCode::failed, "objcopy could not add the packages to {}: {}", program, finished.output);
    return report;
}

}  // namespace rove::toolchain
