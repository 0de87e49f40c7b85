#include "toolchain/bundle.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

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

struct Packed {
    ByteBuffer package;  // empty: it cannot travel
    bool from_cache = false;
};

Result<Packed> pack(code::jit::Engine& engine, const code::jit::Extracted& extracted, const PackageCache& cache,
                    const std::filesystem::path& folder) {
    if (!extracted.obstacle.empty()) return Packed{};
    const Digest made_of = PackageCache::key_of({"both", ROVE_BUILD, as_text(extracted.bitcode)});
    if (ByteBuffer kept = cache.find(made_of); !kept.empty()) return Packed{std::move(kept), true};
    Result<ByteBuffer> made = make_package(engine, extracted, folder);
    if (!made) return prefixed(made.error(), extracted.name);
    cache.keep(made_of, *made);
    return Packed{std::move(*made), false};
}

// Each thread takes the next one that nobody has; what goes wrong first, in their order, is told.
Result<std::vector<Packed>> pack_all(code::jit::Engine& engine, const std::vector<code::jit::Extracted>& all) {
    const PackageCache cache;
    std::vector<Result<Packed>> packed(all.size(), Packed{});
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    const auto pack_some = [&]() -> Status {
        ROVE_TRY(const TemporaryFolder folder, TemporaryFolder::make());
        for (std::size_t i = next++; i < all.size() && !failed; i = next++) {
            packed[i] = pack(engine, all[i], cache, folder.path());
            if (!packed[i]) failed = true;
        }
        return {};
    };
    const std::size_t threads =
        std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, std::max(all.size(), std::size_t{1}));
    std::vector<std::future<Status>> others;
    for (std::size_t i = 1; i < threads; ++i) try {
            others.push_back(std::async(std::launch::async, pack_some));
        } catch (const std::system_error&) {  // no thread to be had: those that are there do it
            break;
        }
    Status done = pack_some();
    for (std::future<Status>& each : others)
        if (Status its = each.get(); done && !its) done = std::move(its);
    ROVE_CHECK(std::move(done));
    std::vector<Packed> whole;
    for (Result<Packed>& each : packed) {
        if (!each) return tl::unexpected<Error>(std::move(each.error()));
        whole.push_back(std::move(*each));
    }
    return whole;
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
    ROVE_TRY(const std::vector<Packed> packed, pack_all(*engine, all));
    BundleReport report;
    std::vector<Bundle::Entry> entries;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::size_t functions = all[i].keys.size();
        if (all[i].obstacle.empty()) {
            report.functions += functions;
            if (packed[i].from_cache) report.from_cache += functions;
            if (has_image(packed[i].package)) report.with_image += functions;
        } else {
            report.stay += functions;
            if (options.warn) options.warn(fmt::format("{} cannot be sent: {}", all[i].name, all[i].obstacle));
        }
        for (const std::string& key : all[i].keys)
            entries.push_back({.key = key, .package = packed[i].package, .why_not = all[i].obstacle});
    }
    ROVE_TRY(const TemporaryFolder folder, TemporaryFolder::make());
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
