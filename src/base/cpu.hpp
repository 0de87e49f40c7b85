// CPU extensions that code was compiled for, and whether this CPU has them.
//
// Threads: any.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rove {

// The extensions that can be checked, by LLVM's names, for one kind of CPU ("x86_64", the beginning of its triples); none for other kinds.
// Extensions that are not listed exist in all CPUs of the kind, or are not checked.
[[nodiscard]] std::span<const std::string_view> cpu_extensions(std::string_view kind);

// Code that needs extensions lists them among its package's imports, by a name that no symbol has: "rove.cpu.x86_64.avx2+fma".
[[nodiscard]] std::string cpu_import(std::string_view kind, const std::vector<std::string_view>& extensions);
[[nodiscard]] bool is_cpu_import(std::string_view import);
// The extensions in such a name that this machine's CPU lacks, as "avx2, fma". Empty: none, or the name is for another kind of CPU, or it
// is no such name. An extension that is not in the list counts as missing.
[[nodiscard]] std::string lacked_by_cpu(std::string_view import);

}  // namespace rove
