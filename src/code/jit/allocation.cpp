#include "code/jit/allocation.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DerivedTypes.h>

namespace rove::code::jit {

bool is_allocation(llvm::StringRef name) {
    const bool allocates = name.consume_front("_Znwm") || name.consume_front("_Znam");
    if (!allocates && !name.consume_front("_ZdlPv") && !name.consume_front("_ZdaPv")) return false;
    static constexpr llvm::StringLiteral forms[] = {"", "RKSt9nothrow_t", "St11align_val_t",
                                                    "St11align_val_tRKSt9nothrow_t"};
    static constexpr llvm::StringLiteral with_size[] = {"m", "mSt11align_val_t"};
    return llvm::is_contained(forms, name) || (!allocates && llvm::is_contained(with_size, name));
}

llvm::Function* declare_allocation(const llvm::GlobalValue& replaced, llvm::Module& into) {
    auto* declared = llvm::Function::Create(llvm::cast<llvm::FunctionType>(replaced.getValueType()),
                                            llvm::GlobalValue::ExternalLinkage, "", into);
    declared->setName(replaced.getName());
    declared->addFnAttr(llvm::Attribute::NoBuiltin);  // as the compiler declares it: explicit calls are not left out
    return declared;
}

std::vector<std::string> leave_out_allocation(llvm::Module& module) {
    std::vector<llvm::GlobalValue*> replaced;  // a form may be another one's second name
    for (llvm::GlobalValue& value : module.global_values())
        if (!value.isDeclaration() && is_allocation(value.getName())) replaced.push_back(&value);
    std::vector<std::string> names;
    for (llvm::GlobalValue* value : replaced) {
        names.push_back(llvm::demangle(value->getName().str()));
        llvm::Function* declared = declare_allocation(*value, module);
        value->replaceAllUsesWith(declared);
        declared->takeName(value);
    }
    for (llvm::GlobalValue* value : replaced) value->eraseFromParent();
    return names;
}

}  // namespace rove::code::jit
