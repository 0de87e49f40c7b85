#include "toolchain/bundle.hpp"

#include <memory>
#include <set>
#include <utility>

#include "base/elf.hpp"
#include "base/quoted.hpp"
#include "bitcode/compiler.hpp"
#include "code/cache.hpp"
#include "package/bundle.hpp"
#include "package/kept_files.hpp"
#include "package/package.hpp"
#include "toolchain/files.hpp"
#include "toolchain/kept_facts.hpp"
#include "toolchain/libraries.hpp"
#include "toolchain/notes.hpp"
#include "toolchain/packer.hpp"
#include "toolchain/replace_file.hpp"

namespace rove::toolchain {
namespace {

// The bitcode of the program that its file contains. invalid: the file has none, or it was removed.
Result<ByteBuffer> bitcode_of(const std::string& program) {
    ROVE_TRY(ByteBuffer bitcode, read_section(program, ".llvmbc"));
    if (!bitcode.empty()) return bitcode;
    ROVE_TRY(const ByteBuffer packages, read_section(program, Bundle::kSection));
    if (!packages.empty())
        return fail(ErrorCode::invalid,
                    "the functions of {} have been packed already, and their bitcode is not in it any more; link it "
                    "again first",
                    program);
    return fail(ErrorCode::invalid,
                "{} carries no bitcode of itself: compile it with clang, -Xclang -fembed-bitcode=all and "
                "-fno-assume-unique-vtables, as rove_add_executable() does",
                program);
}

// The names, in quotes, that its functions need and only the program's own file defines; empty: none.
std::string left_at_home(const PackageStore& package, const ProgramNames& program) {
    std::string names;
    for (const std::string& name : package.manifest().imports)
        if (program.only_program_has(name)) names += (names.empty() ? "'" : ", '") + name + "'";
    return names;
}

// A bundle, and the notes about it.
class Findings {
public:
    Findings(const BundleOptions& options, const ProgramNames& program) : options_(options), program_(program) {}

    void warn(std::string_view line) {
        ++warnings_;
        if (options_.warn) options_.warn(line);
    }
    // Adds functions that travel together, with their package, or the reason why there is none.
    Status add(const bitcode::Extracted& from, const Packed& packed) {
        std::vector<std::string> keys;
        for (const std::string& key : from.keys)
            if (const Status fits = Bundle::check_key(key); fits)
                keys.push_back(key);
            else
                stays(1, from.facts.name, fits.error().message());
        if (keys.empty()) return {};
        if (packed.package)
            ROVE_CHECK(travels(keys.size(), from, packed));
        else
            stays(keys.size(), from.facts.name, packed.why_not);
        for (const std::string& key : keys)
            entries_.push_back({.key = key, .package = packed.package, .why_not = packed.why_not});
        return {};
    }
    // Notes that concern all packages.
    void warn_of_all() {
        const std::string program = options_.program.string();
        warn_of_replaced([this](std::string_view line) { warn(line); }, replaced_, "this program");
        if (changed_at_home_.empty()) return;
        warn(fmt::format(
            "{} changes {}, which functions that it sends use: on each node {}; pass what a function needs of that",
            program, quoted(changed_at_home_, changed_at_home_.size()),
            changed_at_home_.size() == 1 ? "it begins with its first value" : "they begin with their first values"));
    }
    [[nodiscard]] const std::vector<Bundle::Entry>& entries() const { return entries_; }
    [[nodiscard]] const BundleReport& report() const { return report_; }
    [[nodiscard]] std::size_t warnings() const { return warnings_; }

private:
    void stays(std::size_t functions, const std::string& name, const std::string& why) {
        report_.stay += functions;
        warn(fmt::format("{} cannot be sent: {}", name, why));
    }
    Status travels(std::size_t functions, const bitcode::Extracted& from, const Packed& packed) {
        replaced_.insert(from.facts.replaced.begin(), from.facts.replaced.end());
        changed_at_home_.insert(from.changed_at_home.begin(), from.changed_at_home.end());
        report_.functions += functions;
        if (packed.from_cache) report_.from_cache += functions;
        ROVE_TRY(const std::shared_ptr<PackageStore> package, PackageStore::parse(*packed.package));
        if (package->slice_index(code::host_triple(), Forms::image)) report_.with_image += functions;
        for (const std::string& name : package->manifest().imports)
            if (program_.replaces_function_of_c(name)) replaced_.insert(name);
        for (const std::string& note : packed.notes) warn(fmt::format("{}: {}", from.facts.name, note));
        const std::string lacking = left_at_home(*package, program_);
        if (!lacking.empty())
            warn(fmt::format(
                "{} needs {}, which {} has without its bitcode: of a static library, most likely; compile that "
                "with -Xclang -fembed-bitcode=all (rove_embed() in CMake), or its calls fail on nodes that "
                "have no such name",
                from.facts.name, lacking, options_.program.string()));
        return {};
    }

    const BundleOptions& options_;
    const ProgramNames& program_;
    BundleReport report_;
    std::vector<Bundle::Entry> entries_;
    std::set<std::string> replaced_, changed_at_home_;
    std::size_t warnings_ = 0;
};

// Adds the section of packages to the program's file.
Status write_section(const BundleOptions& options, const std::vector<Bundle::Entry>& entries) {
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
    return replace_by(std::move(command), options.program);
}

}  // namespace

Result<BundleReport> bundle(const BundleOptions& options) {
    const std::string program = options.program.string();
    ROVE_TRY(const ByteBuffer bitcode, bitcode_of(program));
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
    Findings findings(options, has);
    for (std::size_t i = 0; i < all.size(); ++i) ROVE_CHECK(findings.add(all[i], packed[i]));
    findings.warn_of_all();
    if (options.strict && findings.warnings() != 0)
        return fail(ErrorCode::failed, "{} is left as it was: {} warning{}, with --strict", program,
                    findings.warnings(), findings.warnings() == 1 ? "" : "s");
    ROVE_CHECK(write_section(options, findings.entries()));
    return findings.report();
}

}  // namespace rove::toolchain
