#include "toolchain/bundle.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "code/cache.hpp"
#include "code/own_code.hpp"
#include "package/bundle.hpp"
#include "package/pack.hpp"
#include "toolchain/files.hpp"
#include "toolchain/image.hpp"
#include "toolchain/libraries.hpp"
#include "toolchain/process.hpp"
#include "toolchain/replaced.hpp"

namespace rove::toolchain {
namespace {

// A tool is missing, which is no function's fault.
bool is_not_installed(const Error& error) {
    return error.message().find("is not installed") != std::string::npos;
}

struct Packed {
    std::shared_ptr<const ByteBuffer> package;  // null: it cannot travel …
    std::string why_not;                        // … because
    bool from_cache = false;
};

// Makes packages of what one program can send. Threads: any number, each with a folder of its own.
class Packer {
public:
    Packer(code::jit::Engine& engine, const Libraries& libraries, const std::vector<std::string>& dependencies)
        : engine_(engine), libraries_(libraries), dependencies_(dependencies) {
        for (const std::string& soname : libraries.sonames()) linked_with_ += soname + '\n';
        for (const std::string& soname : dependencies) linked_with_ += soname + '\n';
    }

    [[nodiscard]] Result<Packed> pack(const code::jit::Extracted& extracted,
                                      const std::filesystem::path& folder) const {
        if (!extracted.obstacle.empty()) return Packed{.why_not = extracted.obstacle};
        const Digest made_of = PackageCache::key_of({"both", ROVE_BUILD, linked_with_, as_text(extracted.bitcode)});
        if (ByteBuffer kept = cache_.find(made_of); !kept.empty())
            return Packed{.package = std::make_shared<const ByteBuffer>(std::move(kept)), .from_cache = true};
        Result<ByteBuffer> made = make(extracted, folder);
        if (!made && made.error().code() == ErrorCode::unsupported && !is_not_installed(made.error()))
            return Packed{.why_not = made.error().message()};
        if (!made) return prefixed(made.error(), extracted.name);
        cache_.keep(made_of, *made);
        return Packed{.package = std::make_shared<const ByteBuffer>(std::move(*made))};
    }

private:
    // Image and bitcode for this machine's kind.
    [[nodiscard]] Result<ByteBuffer> make(const code::jit::Extracted& extracted,
                                          const std::filesystem::path& folder) const {
        const std::string triple(code::host_triple());
        ROVE_TRY(
            const code::jit::Prepared prepared,
            engine_.prepare(
                {.triple = triple, .modules = {extracted.bitcode}, .interface = false, .entries = extracted.entries}));
        wire::Manifest manifest = code::manifest_of(extracted, prepared);
        manifest.dependencies = dependencies_of(manifest.imports);
        std::vector<ByteBuffer> stored;
        if (prepared.image_obstacle.empty()) {
            Result<wire::Image> image =
                link_image({prepared.object, folder, manifest.entries, manifest.exports, manifest.imports});
            if (!image && is_not_installed(image.error())) return tl::unexpected<Error>(image.error());
            if (image)
                manifest.slices.push_back(
                    make_slice(triple, wire::Form::image, wire::encode(*image), stored.emplace_back()));
        }
        manifest.slices.push_back(make_slice(triple, wire::Form::bitcode, prepared.bitcode, stored.emplace_back()));
        ByteBuffer file = PackageStore::serialize(manifest, stored);
        ROVE_CHECK(PackageStore::parse(file));  // what nobody could open is not written
        return file;
    }
    [[nodiscard]] std::vector<std::string> dependencies_of(const std::vector<std::string>& imports) const {
        std::set<std::string> sonames(dependencies_.begin(), dependencies_.end());
        for (const std::string& name : imports)
            if (std::string soname = libraries_.with(name); !soname.empty()) sonames.insert(std::move(soname));
        return {sonames.begin(), sonames.end()};
    }

    code::jit::Engine& engine_;
    const Libraries& libraries_;
    const std::vector<std::string>& dependencies_;
    std::string linked_with_;
    const PackageCache cache_;
};

// Each thread takes the next one that nobody has; what goes wrong first, in their order, is told.
Result<std::vector<Packed>> pack_all(const Packer& packer, const std::vector<code::jit::Extracted>& all) {
    std::vector<Result<Packed>> packed(all.size(), Packed{});
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    const auto pack_some = [&]() -> Status {
        ROVE_TRY(const TemporaryFolder folder, TemporaryFolder::make());
        for (std::size_t i = next++; i < all.size() && !failed; i = next++) {
            packed[i] = packer.pack(all[i], folder.path());
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

// What its functions need and only the program's own file has, in quotes; empty: nothing.
std::string left_at_home(const PackageStore& package, const Libraries& libraries) {
    std::string names;
    for (const std::string& name : package.manifest().imports)
        if (libraries.only_program_has(name)) names += (names.empty() ? "'" : ", '") + name + "'";
    return names;
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
    const Libraries libraries = Libraries::of_program(options.program);
    ROVE_TRY(const std::vector<Packed> packed, pack_all(Packer(*engine, libraries, options.dependencies), all));
    BundleReport report;
    std::vector<Bundle::Entry> entries;
    std::set<std::string> replaced, begin_anew;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::size_t functions = all[i].keys.size();
        if (packed[i].why_not.empty()) {
            replaced.insert(all[i].replaced.begin(), all[i].replaced.end());
            begin_anew.insert(all[i].begin_anew.begin(), all[i].begin_anew.end());
            report.functions += functions;
            if (packed[i].from_cache) report.from_cache += functions;
            ROVE_TRY(const std::shared_ptr<PackageStore> package, PackageStore::parse(*packed[i].package));
            if (package->slice_index(code::host_triple(), wire::Form::image)) report.with_image += functions;
            const std::string lacking = left_at_home(*package, libraries);
            if (!lacking.empty() && options.warn)
                options.warn(
                    fmt::format("{} needs {}, which {} has without its bitcode: of a static library, most "
                                "likely; compile that with -Xclang -fembed-bitcode=all (rove_embed() in "
                                "CMake), or its calls fail on nodes that have no such name",
                                all[i].name, lacking, program));
        } else {
            report.stay += functions;
            if (options.warn) options.warn(fmt::format("{} cannot be sent: {}", all[i].name, packed[i].why_not));
        }
        for (const std::string& key : all[i].keys)
            entries.push_back({.key = key, .package = packed[i].package, .why_not = packed[i].why_not});
    }
    warn_of_replaced(options.warn, replaced, "this program");
    if (options.warn && !begin_anew.empty())
        options.warn(
            fmt::format("on each node {} begin with their first values, whatever this program sets its own to; "
                        "pass what a function needs of that",
                        fmt::join(begin_anew, ", ")));
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
