#include "toolchain/bundle.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <thread>

#include "base/descriptor.hpp"
#include "base/elf.hpp"
#include "base/quoted.hpp"
#include "code/cache.hpp"
#include "code/own_code.hpp"
#include "package/bundle.hpp"
#include "package/digest.hpp"
#include "package/pack.hpp"
#include "toolchain/files.hpp"
#include "toolchain/image.hpp"
#include "toolchain/kept_facts.hpp"
#include "toolchain/kept_objects.hpp"
#include "toolchain/libraries.hpp"
#include "toolchain/process.hpp"
#include "toolchain/replaced.hpp"

namespace rove::toolchain {
namespace {

struct Packed {
    std::shared_ptr<const ByteBuffer> package;  // null: it cannot travel …
    std::string why_not;                        // … because
    bool from_cache = false;
};

// Makes packages of what one program can send, in three steps: what has been made before is found, the rest is compiled on all cores,
// and then linked one by one, which takes two milliseconds each.
class Packer {
public:
    Packer(bitcode::Compiler& compiler, const std::filesystem::path& program, const Libraries& libraries,
           const std::vector<std::string>& dependencies)
        : compiler_(compiler),
          libraries_(libraries),
          dependencies_(dependencies),
          linked_with_(libraries.lines() + '\n'),
          made_by_(code::made_by(compiler, reinterpret_cast<const void*>(&link_image))),
          kept_objects_(program, made_by_) {
        for (const std::string& soname : dependencies) linked_with_ += soname + '\n';
    }

    [[nodiscard]] const std::string& made_by() const { return made_by_; }
    // Why what was packed is packed again the next time; empty: it is not.
    [[nodiscard]] const std::string& why_not_kept() const { return why_not_kept_; }

    // The package that has been made of bitcode with that digest; null: none.
    [[nodiscard]] std::shared_ptr<const ByteBuffer> find(const Digest& bitcode) {
        std::shared_ptr<const ByteBuffer>& found = found_[bitcode];
        if (found == nullptr)
            if (ByteBuffer kept = cache_.find(key_of(bitcode)); is_linked_as_now(kept))
                found = std::make_shared<const ByteBuffer>(std::move(kept));
        return found;
    }

    // One for each, in their order.
    [[nodiscard]] Result<std::vector<Packed>> pack(const std::vector<bitcode::Extracted>& all) {
        std::vector<Packed> packed(all.size());
        std::vector<Work> work;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (!all[i].facts.obstacle.empty()) {
                packed[i].why_not = all[i].facts.obstacle;
                continue;
            }
            if (auto kept = find(all[i].facts.digest))
                packed[i] = {.package = std::move(kept), .from_cache = true};
            else
                work.push_back({.place = i, .from = all[i]});
        }
        if (work.empty()) return packed;
        ROVE_TRY(const TemporaryFolder folder, TemporaryFolder::make());
        kept_objects_.find(shared_);
        for (std::size_t begin = 0; begin < work.size(); begin += kAtOnce) {
            const std::span<Work> some = std::span(work).subspan(begin, std::min(kAtOnce, work.size() - begin));
            prepare(some);
            ROVE_CHECK(link(some, folder.path(), packed));
        }
        kept_objects_.keep(shared_);
        return packed;
    }

private:
    static constexpr std::size_t kAtOnce = 64;  // packages whose code is in memory: some 100 KiB each

    // A package that is not there yet.
    struct Work {
        std::size_t place;
        const bitcode::Extracted& from;
        Result<bitcode::Prepared> prepared = fail(ErrorCode::cancelled, "ended: a signal came");
    };

    [[nodiscard]] Digest key_of(const Digest& bitcode) const {
        return digest_of({"both", made_by_, linked_with_, bitcode.hex()});
    }

    // Another of the program's libraries may have a name by now, or one that was not found may be there.
    [[nodiscard]] bool is_linked_as_now(const ByteBuffer& package) const {
        if (package.empty()) return false;
        const Result<std::shared_ptr<PackageStore>> kept = PackageStore::parse(package);
        return kept && (*kept)->manifest().dependencies == dependencies_of((*kept)->manifest().imports);
    }

    Status link(std::span<Work> some, const std::filesystem::path& folder, std::vector<Packed>& packed) {
        for (Work& each : some) {
            ROVE_CHECK(not_interrupted());
            Result<ByteBuffer> made = each.prepared ? make(each, folder) : tl::unexpected<Error>(each.prepared.error());
            if (!made && made.error().code() != ErrorCode::unsupported)
                return prefixed(made.error(), each.from.facts.name);
            if (!made) {
                packed[each.place].why_not = made.error().message();
                continue;
            }
            if (Status kept = cache_.keep(key_of(each.from.facts.digest), *made); !kept)
                why_not_kept_ = kept.error().message();
            packed[each.place].package = std::make_shared<const ByteBuffer>(std::move(*made));
        }
        return {};
    }

    // Each thread takes the next one that nobody has.
    void prepare(std::span<Work> work) const {
        std::atomic<std::size_t> next{0};
        const auto prepare_some = [&] {
            for (std::size_t i = next++; i < work.size() && not_interrupted(); i = next++)
                work[i].prepared = compiler_.prepare({.triple = std::string(code::host_triple()),
                                                      .modules = {work[i].from.bitcode},
                                                      .interface = false,
                                                      .entries = work[i].from.entries,
                                                      .shared = &shared_});
        };
        const std::size_t threads =
            std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, std::max(work.size(), std::size_t{1}));
        std::vector<std::future<void>> others;
        for (std::size_t i = 1; i < threads; ++i) try {
                others.push_back(std::async(std::launch::async, prepare_some));
            } catch (const std::system_error&) {  // no thread is available: those that are there do it
                break;
            }
        prepare_some();
        for (std::future<void>& each : others) each.get();
    }

    // Image and bitcode for this machine's kind.
    [[nodiscard]] Result<ByteBuffer> make(Work& work, const std::filesystem::path& folder) const {
        const std::string triple(code::host_triple());
        const bitcode::Prepared prepared = std::move(*work.prepared);  // given back at the end
        wire::Manifest manifest = code::manifest_of(work.from, prepared);
        manifest.dependencies = dependencies_of(manifest.imports);
        std::vector<ByteBuffer> stored;
        if (prepared.image_obstacle.empty()) {
            ROVE_TRY(std::vector<std::filesystem::path> others, files_of(prepared.shared, folder));
            Result<wire::Image> image = link_image(compiler_, {prepared.object, folder, manifest.entries,
                                                               manifest.exports, manifest.imports, std::move(others)});
            if (!image && image.error().code() != ErrorCode::unsupported) return tl::unexpected<Error>(image.error());
            if (ByteBuffer encoded = image ? wire::encode(*image) : ByteBuffer();
                !encoded.empty() && encoded.size() <= wire::kSliceBytesMax)
                manifest.slices.push_back(make_slice(triple, Forms::image, std::move(encoded), stored.emplace_back()));
        }
        if (prepared.bitcode.size() > wire::kSliceBytesMax)
            return fail(ErrorCode::unsupported, "its bitcode has {} bytes, and {} are the most",
                        prepared.bitcode.size(), wire::kSliceBytesMax);
        manifest.slices.push_back(make_slice(triple, Forms::bitcode, prepared.bitcode, stored.emplace_back()));
        Result<ByteBuffer> file = rove::pack(manifest, stored);
        if (!file && work.from.keys.size() > 1)
            return fail(file.error().code(),
                        "{}; functions that reach a static in common travel in one package: have fewer of them reach "
                        "it, or pass what they need of it",
                        file.error().message());
        return file;
    }
    // Written where that has not been done.
    static Result<std::vector<std::filesystem::path>> files_of(
        const std::vector<std::shared_ptr<const bitcode::SharedObject>>& objects, const std::filesystem::path& folder) {
        std::vector<std::filesystem::path> files;
        for (const auto& each : objects) {
            files.push_back(folder / (each->made_of.hex() + ".o"));
            std::error_code unknown;
            if (!std::filesystem::exists(files.back(), unknown)) ROVE_CHECK(write_file(files.back(), each->object));
        }
        return files;
    }
    [[nodiscard]] std::vector<std::string> dependencies_of(const std::vector<std::string>& imports) const {
        const std::vector<std::string> found = libraries_.with(imports);
        std::set<std::string> sonames(found.begin(), found.end());
        sonames.insert(dependencies_.begin(), dependencies_.end());
        return {sonames.begin(), sonames.end()};
    }

    bitcode::Compiler& compiler_;
    const Libraries& libraries_;
    const std::vector<std::string>& dependencies_;
    std::string linked_with_;
    std::string made_by_;
    const PackageCache cache_;
    std::string why_not_kept_;
    std::map<Digest, std::shared_ptr<const ByteBuffer>> found_;  // by the digests of their bitcode
    mutable bitcode::SharedObjects shared_;
    KeptObjects kept_objects_;
};

// What its functions need and only the program's own file has, in quotes; empty: nothing.
std::string left_at_home(const PackageStore& package, const ProgramNames& program) {
    std::string names;
    for (const std::string& name : package.manifest().imports)
        if (program.only_program_has(name)) names += (names.empty() ? "'" : ", '") + name + "'";
    return names;
}

// A temporary folder beside a file. The destructor removes it. Others may be able to write where the file is, and could put another folder or a link into
// its place. So it is used by its descriptor alone.
class FolderBeside {
public:
    explicit FolderBeside(const std::filesystem::path& file) : path_(file.string() + ".packed.XXXXXX") {
        if (mkdtemp(path_.data()) == nullptr) {
            path_.clear();
            return;
        }
        folder_ = Descriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        struct stat made{};
        if (fstat(folder_.number(), &made) != 0 || made.st_uid != geteuid()) folder_ = {};
    }
    FolderBeside(const FolderBeside&) = delete;
    ~FolderBeside() {
        if (path_.empty()) return;
        (void)unlinkat(folder_.number(), kFile, 0);
        (void)rmdir(path_.c_str());
    }
    [[nodiscard]] bool is_there() const { return folder_.number() >= 0; }
    // The file in it, for programs that this one runs.
    [[nodiscard]] std::string path_of_file() const {
        return fmt::format("/proc/{}/fd/{}/{}", getpid(), folder_.number(), kFile);
    }
    [[nodiscard]] Descriptor open_file() const {
        return Descriptor(openat(folder_.number(), kFile, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    }
    // False: see errno.
    [[nodiscard]] bool move_file_to(const std::filesystem::path& place) const {
        return renameat(folder_.number(), kFile, AT_FDCWD, place.c_str()) == 0;
    }

private:
    static constexpr const char* kFile = "program";
    std::string path_;  // empty: it was not made
    Descriptor folder_;
};

// Has a command of objcopy's write the program anew, beside it, and take its place: what is interrupted leaves it as it was.
Status replace_by(std::vector<std::string> command, const std::filesystem::path& program) {
    std::error_code unknown;
    const std::filesystem::path place = std::filesystem::canonical(program, unknown);
    if (unknown) return fail(ErrorCode::failed, "{} cannot be written: {}", program.string(), unknown.message());
    const auto not_added = [&program](const std::string& why) {
        return fail(ErrorCode::failed, "the packages could not be added to {}: {}", program.string(), why);
    };
    const FolderBeside beside(place);
    if (!beside.is_there()) return not_added(strerror(errno));
    command.insert(command.end(), {place.string(), beside.path_of_file()});
    struct stat before{};
    const bool is_known = stat(place.c_str(), &before) == 0;
    ROVE_TRY(const Ran ran, run(command, "binutils"));
    ROVE_CHECK(not_interrupted());
    if (ran.status != 0) return not_added("objcopy: " + ran.out);
    if (const Descriptor written = beside.open_file(); is_known) {  // objcopy writes a new file as any program does
        const bool has_owner = fchown(written.number(), before.st_uid, before.st_gid) == 0;
        (void)fchmod(written.number(),
                     before.st_mode & (has_owner ? 07777U : 0777U));  // to run as another is the owner's
    }
    if (!beside.move_file_to(place)) return not_added(strerror(errno));
    return {};
}

}  // namespace

Result<BundleReport> bundle(const BundleOptions& options) {
    const std::string program = options.program.string();
    ROVE_TRY(const ByteBuffer bitcode, read_section(program, ".llvmbc"));
    if (bitcode.empty()) {
        ROVE_TRY(const ByteBuffer packages, read_section(program, Bundle::kSection));
        if (!packages.empty())
            return fail(
                ErrorCode::invalid,
                "the functions of {} have been packed already; link it again first, or pack it with --keep-bitcode",
                program);
        return fail(ErrorCode::invalid,
                    "{} carries no bitcode of itself: compile it with clang, -Xclang -fembed-bitcode=all and "
                    "-fno-assume-unique-vtables, as "
                    "rove_add_executable() does",
                    program);
    }
    ROVE_TRY(bitcode::Compiler * compiler, bitcode::compiler());
    if (const Status may_keep = KeptFiles::check(KeptFiles::default_folder()); !may_keep && options.warn)
        options.warn(may_keep.error().message());
    const ProgramNames has = ProgramNames::of(options.program);
    Packer packer(*compiler, options.program, has.libraries(), options.dependencies);
    KeptFacts facts(options.program, packer.made_by(),
                    [&](const Digest& bitcode) { return packer.find(bitcode) != nullptr; });
    ROVE_TRY(const std::vector<bitcode::Extracted> all,
             compiler->extract_all({.from = {.program = program, .section = bitcode},
                                    .is_strong = [&has](std::string_view name) { return has.is_strong(name); },
                                    .known = &facts}));
    ROVE_TRY(const std::vector<Packed> packed, packer.pack(all));
    facts.write();
    if (!packer.why_not_kept().empty() && options.warn)
        options.warn(fmt::format("all packages are made again the next time: {}", packer.why_not_kept()));
    BundleReport report;
    std::size_t warnings = 0;
    const auto warn = [&](std::string_view line) {
        ++warnings;
        if (options.warn) options.warn(line);
    };
    std::vector<Bundle::Entry> entries;
    std::set<std::string> replaced, changed_at_home;
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::vector<std::string> keys;
        for (const std::string& key : all[i].keys)
            if (const Status fits = Bundle::check_key(key); fits) {
                keys.push_back(key);
            } else {
                ++report.stay;
                warn(fmt::format("{} cannot be sent: {}", all[i].facts.name, fits.error().message()));
            }
        if (keys.empty()) continue;
        const std::size_t functions = keys.size();
        if (packed[i].package) {
            replaced.insert(all[i].facts.replaced.begin(), all[i].facts.replaced.end());
            changed_at_home.insert(all[i].changed_at_home.begin(), all[i].changed_at_home.end());
            report.functions += functions;
            if (packed[i].from_cache) report.from_cache += functions;
            ROVE_TRY(const std::shared_ptr<PackageStore> package, PackageStore::parse(*packed[i].package));
            if (package->slice_index(code::host_triple(), Forms::image)) report.with_image += functions;
            const std::string lacking = left_at_home(*package, has);
            if (!lacking.empty())
                warn(
                    fmt::format("{} needs {}, which {} has without its bitcode: of a static library, most "
                                "likely; compile that with -Xclang -fembed-bitcode=all (rove_embed() in "
                                "CMake), or its calls fail on nodes that have no such name",
                                all[i].facts.name, lacking, program));
        } else {
            report.stay += functions;
            warn(fmt::format("{} cannot be sent: {}", all[i].facts.name, packed[i].why_not));
        }
        for (const std::string& key : keys)
            entries.push_back({.key = key, .package = packed[i].package, .why_not = packed[i].why_not});
    }
    warn_of_replaced(warn, replaced, "this program");
    if (!changed_at_home.empty())
        warn(fmt::format(
            "{} changes {}, which functions that it sends use: on each node {}; pass what a function "
            "needs of that",
            program, quoted(changed_at_home, changed_at_home.size()),
            changed_at_home.size() == 1 ? "it begins with its first value" : "they begin with their first values"));
    if (options.strict && warnings != 0)
        return fail(ErrorCode::failed, "{} is left as it was: {} warning{}, with --strict", program, warnings,
                    warnings == 1 ? "" : "s");
    ROVE_TRY(const TemporaryFolder folder, TemporaryFolder::make());
    const std::filesystem::path section = folder.path() / "bundle";
    ROVE_TRY(const ByteBuffer encoded, Bundle::encode(entries));
    ROVE_CHECK(write_file(section, encoded));
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
    ROVE_CHECK(replace_by(command, options.program));
    return report;
}

}  // namespace rove::toolchain
