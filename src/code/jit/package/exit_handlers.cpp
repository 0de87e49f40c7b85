#include "code/jit/package/exit_handlers.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include <cstdint>
#include <map>
#include <vector>

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

namespace {

// By the order in which they are registered: natively a program runs them after all that was registered as it began, from the largest priority to
// the smallest and from the last to the first.
std::vector<llvm::Constant*> destructors_of(llvm::GlobalVariable& list) {
    std::multimap<std::uint64_t, llvm::Constant*> by_priority;  // of equals, as they stand
    if (const auto* rows = llvm::dyn_cast<llvm::ConstantArray>(list.getInitializer()))
        for (const llvm::Use& row : rows->operands()) {
            const auto* each = llvm::dyn_cast<llvm::ConstantStruct>(row);
            if (each == nullptr || each->getOperand(1)->isNullValue()) continue;
            by_priority.emplace(llvm::cast<llvm::ConstantInt>(each->getOperand(0))->getZExtValue(),
                                each->getOperand(1));
        }
    std::vector<llvm::Constant*> functions;
    for (const auto& [priority, function] : by_priority) functions.push_back(function);
    return functions;
}

}  // namespace

void register_destructors(llvm::Module& module) {
    llvm::GlobalVariable* const list = module.getNamedGlobal("llvm.global_dtors");
    if (list == nullptr || !list->hasInitializer()) return;
    const std::vector<llvm::Constant*> functions = destructors_of(*list);
    list->eraseFromParent();
    if (functions.empty()) return;
    auto* const own = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), false),
                                             llvm::GlobalValue::InternalLinkage, "rove.register_destructors", module);
    own->setDoesNotThrow();
    llvm::IRBuilder<> code(llvm::BasicBlock::Create(module.getContext(), "", own));
    auto* const pointer = llvm::PointerType::getUnqual(module.getContext());
    const llvm::FunctionCallee registers = module.getOrInsertFunction(
        "__cxa_atexit", llvm::FunctionType::get(code.getInt32Ty(), {pointer, pointer, pointer}, false));
    llvm::Value* const handle = module.getOrInsertGlobal("__dso_handle", code.getInt8Ty());
    // The handle in place of an object tells them from others (Destructors::drop_functions); they do not look at it.
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

}  // namespace rove::code::jit
