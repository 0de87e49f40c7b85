// Packages of a program's functions, made from the bitcode that the program's file contains: for programs that were built without finished
// packages. Needs librove-jit.so.
//
// Threads: any, without an engine's lock: package_of_own() may take seconds.
#pragma once

#include <memory>
#include <string>

#include "bitcode/compiler.hpp"
#include "package/package.hpp"

namespace rove::code {

// Whether the running program's file contains its bitcode.
[[nodiscard]] bool has_own_bitcode();
// The package of one of its functions, by the key of package/bundle.hpp: its entry is the first. unsupported: why it cannot travel.
[[nodiscard]] Result<std::shared_ptr<PackageStore>> package_of_own(const std::string& key);

// Reads the program's packages once, in the background, so that the first call need not; if it has none, opens LLVM and reads the program's
// bitcode.
void expect_to_send();
// If LLVM is being opened, waits until that is done, for 5 s at most: otherwise the end of the process could destroy LLVM while that thread
// still opens it.
void wait_until_open();

// One line that identifies the makers of a cached package: the builds of librove-jit.so, of LLVM and of the packing program (`packer` is any
// address within it). Another build may make another package of the same bitcode.
[[nodiscard]] std::string made_by(const bitcode::Compiler& compiler, const void* packer);

// The manifest of a package of extracted functions, without slices.
[[nodiscard]] wire::Manifest manifest_of(const bitcode::Extracted& extracted, const bitcode::Prepared& prepared);

}  // namespace rove::code
