#include "code/jit/package/exit_handlers.hpp"

#include <llvm/IR/IRBuilder.h>

namespace rove::code::jit {
namespace {

struct Handler {
    llvm::StringLiteral name;
    llvm::StringLiteral registers;  // of libc.so, or of the node
    unsigned functions;             // that it is given
    bool with_object;               // that the function is called with: none here
};

constexpr Handler kHandlers[] = {{"atexit", "__cxa_atexit", 1, true},
                                 {"at_quick_exit", "__cxa_at_quick_exit", 1, false},
                                 {"pthread_atfork", "__register_atfork", 3, false}};

// Whatever type the module has declared it with: C allows a declaration without parameters.
void define(llvm::Function& declared, const Handler& handler) {
    llvm::Module& module = *declared.getParent();
    auto* number = llvm::Type::getInt32Ty(module.getContext());
    auto* pointer = llvm::PointerType::getUnqual(module.getContext());
    llvm::SmallVector<llvm::Type*, 4> given(handler.functions, pointer);
    auto* own = llvm::Function::Create(llvm::FunctionType::get(number, given, false),
                                       llvm::GlobalValue::InternalLinkage, "", module);
    own->setDoesNotThrow();
    llvm::IRBuilder<> code(llvm::BasicBlock::Create(module.getContext(), "", own));
    llvm::SmallVector<llvm::Value*, 4> passed;
    for (llvm::Argument& argument : own->args()) passed.push_back(&argument);
    if (handler.with_object) passed.push_back(llvm::ConstantPointerNull::get(pointer));
    passed.push_back(module.getOrInsertGlobal("__dso_handle", code.getInt8Ty()));
    llvm::SmallVector<llvm::Type*, 4> types(passed.size(), pointer);
    const llvm::FunctionCallee registers =
        module.getOrInsertFunction(handler.registers, llvm::FunctionType::get(number, types, false));
    code.CreateRet(code.CreateCall(registers, passed));
    declared.replaceAllUsesWith(own);
    own->takeName(&declared);
    declared.eraseFromParent();
}

}  // namespace

void define_exit_handlers(llvm::Module& module) {
    for (const Handler& handler : kHandlers)
        if (llvm::Function* declared = module.getFunction(handler.name);
            declared != nullptr && declared->isDeclaration() && !declared->use_empty())
            define(*declared, handler);
}

}  // namespace rove::code::jit
