// Products and sums in one expression, a * b + c: C lets a compiler round once, where the CPU has an instruction for that, or twice (clang's
// -ffp-contract=on). Which it is, is a program's to decide when it is compiled, and not the node's: bitcode is compiled for another CPU than
// the program and the image, and a function must not give another result because a better compiled one has taken its place.
#pragma once

#include <llvm/IR/Module.h>

namespace rove::bitcode {

// Has what may be rounded once rounded as the program itself does: twice where it was compiled for CPUs without such an instruction. What
// -ffp-contract=fast and -ffast-math allow stays allowed. To be called after the optimiser, which rounds once where it computes the result of
// constants, here as in the program.
void settle_contraction(llvm::Module& module);

}  // namespace rove::bitcode
