// Builds a package from C and C++ sources: compile (clang 19), prepare (LLVM, src/bitcode), link each image (lld), pack.
//
// Threads: one build at a time in a process.
//
// Invariant: each output is written whole or not at all, and none before all code has been made.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace rove::toolchain {

struct BuildOptions {
    std::filesystem::path source;      // FILE.c, FILE.cpp or a directory of them
    std::filesystem::path output;      // OUT.rove; written whole or not at all
    std::filesystem::path header;      // empty: none
    std::string name;                  // empty: the source's stem
    std::vector<std::string> targets;  // triples; empty: all (base/targets.hpp)
    std::vector<std::string> dependencies;
    std::vector<std::string> compiler_flags;  // appended to clang's command line: -DNAME=…, -I…
    bool interface = false;
    std::function<void(std::string_view)> warn;  // prints a line for the user; may be empty
};

// Builds and writes the package. failed: the compiler's own message; unsupported: no compiler (names the Debian package);
// invalid: no such source, no entry point, a dependency that is not a bare soname, an unknown target.
[[nodiscard]] Status build(const BuildOptions& options);

}  // namespace rove::toolchain
