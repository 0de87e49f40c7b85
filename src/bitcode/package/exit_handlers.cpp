#include "bitcode/package/exit_handlers.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include <map>
#include <vector>

#include "bitcode/listed.hpp"

namespace rove::bitcode {
namespace {

struct Handler {
    llvm::StringLiteral name;
    llvm::StringLiteral registers;  // a function of libc.so, or of the node
    unsigned functions;             // number of functions that it is given
    bool with_object;               // the registered function is called with an object
};

constexpr Handler kHandlers[] = {{"atexit", "__cxa_atexit", 1, true},
                                 {"at_quick_exit", "__cxa_at_quick_exit", 1, false},
                                 {"pthread_atfork", "__register_atfork", 3, false}};

// The package's handle, instead of an object, marks handlers that are functions, not destructors (Destructors::drop_functions). They ignore
// it.
//
// Any declared type is replaced, because C allows a declaration without parameters.
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
    llvm::Value* const handle = module.getOrInsertGlobal("__dso_handle", code.getInt8Ty());
    if (handler.with_object) passed.push_back(handle);
    passed.push_back(handle);
    llvm::SmallVector<llvm::Type*, 4> types(passed.size(), pointer);
    const llvm::FunctionCallee registers =
        module.getOrInsertFunction(handler.registers, llvm::FunctionType::get(number, types, false));
    code.CreateRet(code.CreateCall(registers, passed));
    declared.replaceAllUsesWith(own);
    own->takeName(&declared);
    declared.eraseFromParent();
}

// In the order in which they are registered: natively a program runs them after all functions that were registered as it began, from the largest
// priority to the smallest and from the last to the first.
std::vector<llvm::Constant*> destructors_of(const llvm::Module& module) {
    std::multimap<decltype(Listed::priority), llvm::Constant*> by_priority;  // equal ones stay in their order
    for (const Listed& each : listed(module, kDestructors)) by_priority.emplace(each.priority, each.function);
    std::vector<llvm::Constant*> functions;
    for (const auto& [priority, function] : by_priority) functions.push_back(function);
    return functions;
}

}  // namespace

void register_destructors(llvm::Module& module) {
    const std::vector<llvm::Constant*> functions = destructors_of(module);
    if (llvm::GlobalVariable* const list = module.getNamedGlobal(kDestructors)) list->eraseFromParent();
    if (functions.empty()) return;
    auto* const own = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), false),
                                             llvm::GlobalValue::InternalLinkage, "rove.register_destructors", module);
    own->setDoesNotThrow();
    llvm::IRBuilder<> code(llvm::BasicBlock::Create(module.getContext(), "", own));
    auto* const pointer = llvm::PointerType::getUnqual(module.getContext());
    const llvm::FunctionCallee registers = module.getOrInsertFunction(
        "__cxa_atexit", llvm::FunctionType::get(code.getInt32Ty(), {pointer, pointer, pointer}, false));
    llvm::Value* const handle = module.getOrInsertGlobal("__dso_handle", code.getInt8Ty());
    for (llvm::Constant* const function : functions) code.CreateCall(registers, {function, handle, handle});
    code.CreateRetVoid();
    llvm::appendToGlobalCtors(module, own, 0);  // before all constructors
}

void define_exit_handlers(llvm::Module& module) {
    for (const Handler& handler : kHandlers)
        if (llvm::Function* declared = module.getFunction(handler.name);
            declared != nullptr && declared->isDeclaration() && !declared->use_empty())
            define(*declared, handler);
}

}  // namespace rove::bitcode
