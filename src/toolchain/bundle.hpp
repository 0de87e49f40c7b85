// rove bundle: the packages of all functions that a program can send, taken out of its own bitcode and added to its file.
//
// Threads: one bundle() at a time in a process; it uses all cores.
//
// Invariant: after an error or an interruption the program's file is unchanged.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rove::toolchain {

struct BundleOptions {
    std::filesystem::path program;  // changed in place
    std::vector<std::string>
        dependencies;           // bare sonames that every function needs, in addition to those that it is linked with
    bool keep_bitcode = false;  // false: the section of which the packages were made is removed, because it is large
    // Called for functions that cannot travel, or may not run; may be empty.
    std::function<void(std::string_view)> warn;
    bool strict = false;  // a warning is an error, and the program stays unchanged
};
struct BundleReport {
    std::size_t functions = 0;   // functions that travel
    std::size_t stay = 0;        // functions that cannot
    std::size_t with_image = 0;  // functions whose first call needs no compiler
    std::size_t from_cache = 0;
};
// invalid: no such program, or it carries no bitcode of itself, or that was removed; unsupported: no objcopy, or no linker; failed: strict, and
// there were warnings.
[[nodiscard]] Result<BundleReport> bundle(const BundleOptions& options);

}  // namespace rove::toolchain
