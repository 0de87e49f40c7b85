#include "bitcode/package/following.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>

namespace rove::bitcode {
namespace {

constexpr unsigned kLevels = 4;  // additions between an address and a distance

// An address that is computed from such an address. Not `p - (q - r)`, which is no distance.
bool is_beside(const llvm::User& value) {
    const auto is_constant = [&value](unsigned operand) {
        return llvm::isa<llvm::ConstantInt>(value.getOperand(operand));
    };
    switch (llvm::Operator::getOpcode(&value)) {
        case llvm::Instruction::Add: return is_constant(0) || is_constant(1);
        case llvm::Instruction::Sub: return is_constant(1);
        default: return llvm::isa<llvm::PHINode>(value);
    }
}

// An address as a number, or one at a constant distance from it.
bool is_address(const llvm::Value& value, unsigned level = 0) {
    if (llvm::isa<llvm::PtrToIntOperator>(value)) return true;
    const auto* user = llvm::dyn_cast<llvm::User>(&value);
    if (user == nullptr || level == kLevels || !is_beside(*user)) return false;
    return llvm::all_of(user->operands(), [level](const llvm::Use& each) {
        return llvm::isa<llvm::ConstantInt>(each.get()) || is_address(*each, level + 1);
    });
}

bool is_measured_only(const llvm::User& address, unsigned level) {
    return level < kLevels && llvm::all_of(
                                  address.users(),
                                  [level](const llvm::User* each) {
                                      return llvm::isa<llvm::CmpInst>(each) || is_distance(*each) ||
                                             (is_beside(*each) && is_measured_only(*each, level + 1));
                                  });
}

}  // namespace

bool at_calls(const llvm::Function& function, llvm::function_ref<void(const llvm::CallBase&)> give) {
    bool all = function.hasLocalLinkage();
    for (const llvm::Use& use : function.uses()) {
        const auto* call = llvm::dyn_cast<llvm::CallBase>(use.getUser());
        if (call == nullptr || !call->isCallee(&use) || call->arg_size() < function.arg_size())
            all = false;
        else
            give(*call);
    }
    return all;
}

bool is_distance(const llvm::Value& value) {
    const auto* both = llvm::dyn_cast<llvm::BinaryOperator>(&value);
    return both != nullptr && both->getOpcode() == llvm::Instruction::Sub && is_address(*both->getOperand(0)) &&
           is_address(*both->getOperand(1));
}

bool is_measured_only(const llvm::User& address) {
    return is_measured_only(address, 0);
}

bool copies(const llvm::Function& callee) {
    static constexpr llvm::StringLiteral names[] = {"memcpy",  "memmove",  "mempcpy",  "memccpy",
                                                    "wmemcpy", "wmemmove", "wmempcpy", "bcopy"};
    llvm::StringRef name = callee.getName();
    if (name.consume_front("__") && !name.consume_back("_chk")) return false;
    return callee.isDeclaration() && llvm::is_contained(names, name);
}

}  // namespace rove::bitcode
