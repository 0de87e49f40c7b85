#include "toolchain/compile.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>

#include "arch/arch.hpp"
#include "base/targets.hpp"
#include "toolchain/files.hpp"
#include "toolchain/process.hpp"

namespace rove::toolchain {
namespace {

bool is_cpp(const std::filesystem::path& path) {
    constexpr std::array<std::string_view, 3> kEndings{".cpp", ".cc", ".cxx"};
    return std::find(kEndings.begin(), kEndings.end(), path.extension().string()) != kEndings.end();
}

// The folder that holds rove/rove.h: beside an installed command, or in the source tree of a built one.
Result<std::filesystem::path> include_folder() {
    std::vector<std::filesystem::path> places;
    if (const char* given = std::getenv("ROVE_INCLUDE"); given != nullptr && *given != '\0') places.emplace_back(given);
    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const char* way : {"../include", "../../../include", "../../../../../include"}) places.push_back(folder / way);
#ifdef ROVE_SOURCE_INCLUDE
    places.emplace_back(ROVE_SOURCE_INCLUDE);
#endif
    for (const auto& place : places)
        if (std::filesystem::exists(place / "rove/rove.h", ignored))
            return std::filesystem::weakly_canonical(place, ignored);
    return fail(ErrorCode::unsupported,
                "rove/rove.h is not found; set ROVE_INCLUDE to the folder that holds rove/rove.h");
}

bool is_native(std::string_view triple) {
    return triple.starts_with(arch::kName);
}

// Debian keeps another target's headers under /usr/TRIPLE/include; clang looks for them only where that GCC is installed.
Status add_cross_headers(const Target& target, bool cpp, std::vector<std::string>& command) {
    const std::string triple(target.triple);
    const std::filesystem::path base = "/usr/" + triple + "/include";
    std::error_code ignored;
    if (!std::filesystem::exists(base / "stdio.h", ignored))
        return fail(ErrorCode::unsupported,
                    "the C headers for {} are missing; install the Debian package libc6-dev-{}-cross, or build with "
                    "--target for this machine only",
                    triple, target.debian);
    if (cpp) {
        std::vector<std::filesystem::path> versions;
        for (const auto& each : std::filesystem::directory_iterator(base / "c++", ignored))
            versions.push_back(each.path());
        if (versions.empty())
            return fail(ErrorCode::unsupported,
                        "the C++ headers for {} are missing; install the Debian package libstdc++-12-dev-{}-cross",
                        triple, target.debian);
        const std::filesystem::path newest = *std::max_element(versions.begin(), versions.end());
        command.insert(command.end(),
                       {"-nostdinc++", "-isystem", newest.string(), "-isystem", (newest / triple).string()});
    }
    command.insert(command.end(), {"-idirafter", base.string()});
    return {};
}

}  // namespace

bool is_source(const std::filesystem::path& path) {
    return path.extension() == ".c" || is_cpp(path);
}

Result<ByteBuffer> compile(const CompileOptions& options) {
    const bool cpp = is_cpp(options.source);
    ROVE_TRY(const std::filesystem::path include, include_folder());
    const std::filesystem::path output =
        options.folder / (options.source.filename().string() + "." + options.triple + ".bc");
    std::vector<std::string> command{cpp ? "clang++-19" : "clang-19", "--target=" + options.triple};
    // `prepare` optimises all sources together, once: here only the attributes of -O2 are wanted.
    command.insert(command.end(), {"-O2", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", "-fPIC", "-fno-plt",
                                   "-Wall", "-I" + include.string()});
    // Unwind tables only for functions through which the stack may be unwound: keep_unwindable() (bitcode/package/shape.cpp) adds them.
    command.insert(command.end(),
                   {"-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-fno-ident", "-fcolor-diagnostics"});
    // Both options as in rove_add_executable(). Each package has vtables of its own, so the vtable of an object does not identify its type.
    if (cpp) command.insert(command.end(), {"-std=gnu++20", "-fno-assume-unique-vtables"});
    const Target* const target = target_of(options.triple);
    if (target == nullptr) return fail(ErrorCode::invalid, "no code can be made for {}", options.triple);
    for (const std::string_view flag : target->flags)
        if (!flag.empty()) command.emplace_back(flag);
    if (!is_native(options.triple)) ROVE_CHECK(add_cross_headers(*target, cpp, command));
    // A -std option is for one language, and a folder may hold sources of both.
    std::copy_if(options.flags.begin(), options.flags.end(), std::back_inserter(command),
                 [cpp](const std::string& flag) {
                     return !flag.starts_with("-std=") || (flag.find("++") != std::string::npos) == cpp;
                 });
    command.insert(command.end(), {"-o", output.string(), options.source.string()});
    if (isatty(STDERR_FILENO) == 0)
        std::replace(command.begin(), command.end(), std::string("-fcolor-diagnostics"),
                     std::string("-fno-color-diagnostics"));
    // The folder also receives the crash reports of the compiler, and they are removed with it.
    ROVE_TRY(const Ran ran, run(command, "clang-19", {"TMPDIR=" + options.folder.string()}));
    if (ran.status != 0 && says_no_room(ran.out))
        return fail(ErrorCode::failed, "{} cannot be compiled: {}", options.source.string(),
                    no_room_for_temporary_files());
    if (ran.status != 0)
        return fail(ErrorCode::failed, "{} does not compile for {}:\n{}", options.source.string(), options.triple,
                    ran.out);
    return read_file(output);
}

}  // namespace rove::toolchain
