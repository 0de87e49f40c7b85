// Everything that depends on the instruction set. A port consists of a header and a source file in this folder, and a line in the choice below;
// nothing else in src/ depends on the instruction set for which it is compiled.
//
// In namespace rove::arch, each of them has:
//   kName, kTriple           its name: "x86_64", and with the system "x86_64-linux-gnu", as packages name their targets
//   own_soon(line)           prefetches a cache line for writing
//   pause()                  the pause of a loop between two looks at a line that another core writes
//   rest(), rest_briefly()   longer pauses: the time that a yielding thread takes to look again, and a sixteenth of that
//   rest_until_written(word, arrived)   rest() that ends when the line of `word` is written; skipped if arrived() is true
//   page_bytes()             the size of a page of memory; constexpr where no kernel has another one
//   code_written(begin, end) after code was written to memory, and before it is run: lets this core fetch it as it is there
//   ticks()                  a counter of constant rate, the fastest clock available
//   FloatControls            this thread's floating-point state (below)
//   cpu_has(extension)       whether this CPU has an extension, by LLVM's name
//   compiler_symbols()       names of the compiler's runtime library that compiled code may need, with their addresses
//
// A FloatControls records the thread's floating-point state when it is constructed. restore() sets that state again, set_standard() sets the
// state that C defines, and reset() does the same and clears all flags, for a new thread. None of them computes anything, so none can trap.
//
// Threads: any. A FloatControls is of the thread that makes it.
#pragma once

#include <string_view>
#include <vector>

namespace rove::arch {

[[nodiscard]] bool cpu_has(std::string_view extension);

struct Symbol {
    const char* name;
    void* address;
};
[[nodiscard]] std::vector<Symbol> compiler_symbols();

}  // namespace rove::arch

#if defined(__x86_64__)
#include "arch/x86_64.hpp"
#elif defined(__aarch64__)
#include "arch/aarch64.hpp"
#else
#error \
    "Rove supports the instruction sets x86-64 and AArch64: src/arch/arch.hpp lists what a port to another one provides"
#endif
