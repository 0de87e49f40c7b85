// Products and sums in one expression, a * b + c: C lets a compiler round once, if the CPU has an instruction for that, or twice (clang's
// -ffp-contract=on). The program decides that when it is compiled, not the node: bitcode is compiled for another CPU than the program and
// the image, and a function must not return another result because better compiled code has replaced it.
#pragma once

#include <llvm/IR/Module.h>

namespace rove::bitcode {

// Makes such expressions round as the program itself does: twice if it was compiled for CPUs without such an instruction. What
// -ffp-contract=fast and -ffast-math allow stays allowed. To be called after the optimiser, which rounds once when it computes the result of
// constants, here as in the program.
void settle_contraction(llvm::Module& module);

}  // namespace rove::bitcode
