// Instructions that not every CPU of a kind has, and code that was compiled for them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rove {

// Those that a machine can be asked for, by LLVM's names, of one kind of CPU ("x86_64", as triples begin); of other kinds none. All CPUs of the
// kind have what is not listed, or it is not asked for.
[[nodiscard]] std::span<const std::string_view> cpu_extensions(std::string_view kind);

// What needs them says so in the list of a package's imports, by a name that no symbol has: "rove.cpu.x86_64.avx2+fma".
[[nodiscard]] std::string cpu_import(std::string_view kind, const std::vector<std::string_view>& extensions);
[[nodiscard]] bool is_cpu_import(std::string_view import);
// Which of these this machine's CPU lacks, as "avx2, fma". Empty: none, or the name speaks of another kind of CPU, or is no such name. One that
// is not in the list counts as lacking. Threads: any.
[[nodiscard]] std::string lacked_by_cpu(std::string_view import);

}  // namespace rove
