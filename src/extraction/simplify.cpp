#include "extraction/simplify.hpp"

#include <llvm/IR/Module.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

namespace rove::bitcode {

FunctionSimplifier::FunctionSimplifier() {
    passes_.addPass(llvm::SimplifyCFGPass());
    passes_.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes_.addPass(llvm::EarlyCSEPass());
    passes_.addPass(llvm::InstCombinePass());
    passes_.addPass(llvm::SimplifyCFGPass());
}

void FunctionSimplifier::simplify(llvm::Function& function) {
    if (without_exceptions(*function.getParent())) return;
    if (function.isDeclaration() || function.hasOptNone() || !simplified_.insert(&function).second) return;
    passes_.run(function, analyses_.functions);
    // Bodies are read one by one, and facts determined for one function do not hold for others.
    analyses_.functions.clear();
    analyses_.modules.clear();
}

}  // namespace rove::bitcode
