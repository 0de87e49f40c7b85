// The functions of a program out of the bitcode that it carries of itself, as packages: for programs that were built without
// finished ones. Needs librove-jit.so.
//
// Threads: any.
#pragma once

#include <memory>
#include <string>

#include "bitcode/compiler.hpp"
#include "package/package.hpp"

namespace rove::code {

// Whether the running program carries bitcode of itself.
[[nodiscard]] bool has_own_bitcode();
// The package of one of its functions, by the key of package/bundle.hpp: its entry is the first. unsupported: why it cannot travel.
[[nodiscard]] Result<std::shared_ptr<PackageStore>> package_of_own(const std::string& key);

// Reads the program's packages in the background, once, for a first call to come; where it has none, opens LLVM and reads its
// bitcode.
void expect_to_send();
// Waits until LLVM is open, where that has begun, for 5 s at most: a process that ends meanwhile would take LLVM down under the thread that
// opens it.
void wait_until_open();

// What a package of the cache was made by, in one line: the builds of librove-jit.so, of LLVM and of who packs (any address of its own).
// Another build may make another package of the same bitcode.
[[nodiscard]] std::string made_by(const bitcode::Compiler& compiler, const void* packer);

// What all packages of extracted functions share: a manifest without slices.
[[nodiscard]] wire::Manifest manifest_of(const bitcode::Extracted& extracted, const bitcode::Prepared& prepared);

}  // namespace rove::code
