// What Rove asks of an instruction set. A port is a header and a source file beside those that are here, and the choice below; nothing
// else in src/ asks which instruction set it is compiled for.
//
// In namespace rove::arch, each of them has:
//   kName, kTriple           what it is called: "x86_64", and with the system "x86_64-linux-gnu", as packages name their targets
//   own_soon(line)           asks for a cache line so as to write it
//   pause()                  what a loop does between two looks at a line that another core writes
//   rest(), rest_briefly()   a longer pause: as long as a yielding thread takes to look again, and a sixteenth of it
//   rest_until_written(word, arrived)   rest() that ends when the line of `word` is written; not begun where arrived() says that it is
//   ticks()                  a counter of constant rate, the fastest clock there is
//   FloatControls            how this thread computes with floating-point numbers (below)
//   cpu_has(extension)       whether this CPU has instructions that not each of its kind has, by LLVM's name for them
//   compiler_symbols()       names of the compiler's own library that compiled code may ask for, with their addresses
//
// FloatControls keeps what a thread's arithmetic was when it was made: restore() sets that again, set_standard() what C sets out, and
// reset() the same with nothing raised, for a thread that begins. None of them computes anything, so none can trap.
//
// Threads: any.
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
#error "Rove knows the instruction sets x86-64 and AArch64: src/arch says what another one has to give"
#endif
