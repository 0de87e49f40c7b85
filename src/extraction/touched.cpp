#include "extraction/touched.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <unordered_set>

namespace rove::bitcode {
namespace {

// Follows a pointer through address arithmetic, parameters and results.
class Touches {
public:
    bool touches(const llvm::Value& pointer) {
        if (!seen_.insert(&pointer).second) return false;
        return std::any_of(pointer.use_begin(), pointer.use_end(),
                           [this](const llvm::Use& use) { return touches(use); });
    }

private:
    bool touches(const llvm::Use& use) {
        const llvm::User* user = use.getUser();
        if (const auto* call = llvm::dyn_cast<llvm::CallBase>(user)) return touches(*call, use);
        if (llvm::isa<llvm::CmpInst>(user)) return false;
        if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(user)) return kept_touches(*store, use);
        if (llvm::isa<llvm::GetElementPtrInst, llvm::CastInst, llvm::PHINode, llvm::SelectInst, llvm::ConstantExpr>(
                user))
            return touches(*user);
        if (const auto* end = llvm::dyn_cast<llvm::ReturnInst>(user)) return results_touch(*end->getFunction());
        return true;
    }
    // Code that is not optimised keeps each pointer in a local variable, and reads it from there.
    bool kept_touches(const llvm::StoreInst& store, const llvm::Use& use) {
        const auto* local = llvm::dyn_cast<llvm::AllocaInst>(store.getPointerOperand());
        if (store.getValueOperand() != use.get() || local == nullptr) return true;
        return std::any_of(local->user_begin(), local->user_end(), [this, local](const llvm::User* user) {
            if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(user))
                return touches(static_cast<const llvm::Value&>(*load));
            const auto* other = llvm::dyn_cast<llvm::StoreInst>(user);
            return other == nullptr || other->getValueOperand() == local;
        });
    }
    bool touches(const llvm::CallBase& call, const llvm::Use& use) {
        const llvm::Intrinsic::ID marks = call.getIntrinsicID();
        if (call.isLifetimeStartOrEnd() || marks == llvm::Intrinsic::invariant_start) return false;
        const llvm::Function* callee = call.getCalledFunction();
        if (callee == nullptr || callee->isDeclaration() || !call.isArgOperand(&use)) return true;
        const unsigned number = call.getArgOperandNo(&use);
        return number >= callee->arg_size() || call.isByValArgument(number) || touches(*callee->getArg(number));
    }
    bool results_touch(const llvm::Function& function) {
        return std::any_of(function.use_begin(), function.use_end(), [this](const llvm::Use& use) {
            const auto* call = llvm::dyn_cast<llvm::CallBase>(use.getUser());
            return call == nullptr || !call->isCallee(&use) || touches(static_cast<const llvm::Value&>(*call));
        });
    }

    std::unordered_set<const llvm::Value*> seen_;
};

}  // namespace

bool is_touched(const llvm::GlobalVariable& variable) {
    return Touches().touches(variable);
}

}  // namespace rove::bitcode
