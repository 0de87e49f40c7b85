#include "bitcode/package/contraction.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/TargetParser/Triple.h>

#include "bitcode/values.hpp"

namespace rove::bitcode {
namespace {

// The extension's name on x86-64. All other CPUs that Rove knows have such instructions.
bool rounds_once(const llvm::Function& function) {
    const auto features = cpu_features(function);
    return llvm::is_contained(features, "+fma") || llvm::is_contained(features, "+fma4");
}

llvm::Value* rounded_twice(llvm::IntrinsicInst& both) {
    llvm::IRBuilder<> code(&both);
    if (const auto* strict = llvm::dyn_cast<llvm::ConstrainedFPIntrinsic>(&both)) {
        const auto rounding = strict->getRoundingMode();
        const auto exceptions = strict->getExceptionBehavior();
        llvm::Value* const product =
            code.CreateConstrainedFPBinOp(llvm::Intrinsic::experimental_constrained_fmul, both.getArgOperand(0),
                                          both.getArgOperand(1), &both, "", nullptr, rounding, exceptions);
        return code.CreateConstrainedFPBinOp(llvm::Intrinsic::experimental_constrained_fadd, product,
                                             both.getArgOperand(2), &both, "", nullptr, rounding, exceptions);
    }
    code.setFastMathFlags(both.getFastMathFlags());
    return code.CreateFAdd(code.CreateFMul(both.getArgOperand(0), both.getArgOperand(1)), both.getArgOperand(2));
}

}  // namespace

void settle_contraction(llvm::Module& module) {
    if (llvm::Triple(module.getTargetTriple()).getArch() != llvm::Triple::x86_64) return;
    for (llvm::Function& function : module) {
        if (function.isDeclaration() || rounds_once(function)) continue;
        for (llvm::Instruction& each : llvm::make_early_inc_range(llvm::instructions(function))) {
            auto* const both = llvm::dyn_cast<llvm::IntrinsicInst>(&each);
            if (both == nullptr || (both->getIntrinsicID() != llvm::Intrinsic::fmuladd &&
                                    both->getIntrinsicID() != llvm::Intrinsic::experimental_constrained_fmuladd))
                continue;
            both->replaceAllUsesWith(rounded_twice(*both));
            both->eraseFromParent();
        }
    }
}

}  // namespace rove::bitcode
