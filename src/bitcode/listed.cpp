#include "bitcode/listed.hpp"

#include <llvm/IR/Constants.h>

namespace rove::bitcode {

std::vector<Listed> listed(const llvm::Module& module, llvm::StringRef list) {
    std::vector<Listed> all;
    const llvm::GlobalVariable* const variable = module.getNamedGlobal(list);
    if (variable == nullptr || !variable->hasInitializer()) return all;
    for (const llvm::Use& place : variable->getInitializer()->operands()) {
        const auto* const each = llvm::dyn_cast<llvm::ConstantStruct>(place.get());
        if (each == nullptr || each->getNumOperands() != 3) continue;  // LLVM's reader and verifier refuse all others
        const auto* const priority = llvm::dyn_cast<llvm::ConstantInt>(each->getOperand(0));
        auto* const function = llvm::cast<llvm::Constant>(each->getOperand(1)->stripPointerCastsAndAliases());
        if (priority == nullptr || function->isNullValue()) continue;
        all.push_back({.place = place.getOperandNo(),
                       .priority = priority->getZExtValue(),
                       .function = function,
                       .variable = llvm::dyn_cast<llvm::GlobalVariable>(each->getOperand(2)->stripPointerCasts())});
    }
    return all;
}

}  // namespace rove::bitcode
