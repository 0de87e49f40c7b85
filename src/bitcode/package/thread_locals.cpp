#include "bitcode/package/thread_locals.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/ReplaceConstant.h>

#include <algorithm>
#include <string>
#include <vector>

#include "wire/image.hpp"

namespace rove::bitcode {
namespace {

constexpr llvm::StringRef kControlPrefix = wire::kThreadLocalPrefix;
constexpr llvm::StringRef kGetAddress = wire::kGetThreadLocal;

// The initial value of each thread's copy. Null: zeros, which need no template.
llvm::Constant* template_of(llvm::GlobalVariable& variable, llvm::Align alignment) {
    llvm::Constant* value = variable.getInitializer();
    if (value->isNullValue() || llvm::isa<llvm::UndefValue>(value))
        return llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(variable.getContext()));
    auto* initial = new llvm::GlobalVariable(*variable.getParent(), value->getType(), true,
                                             llvm::GlobalValue::InternalLinkage, value, variable.getName() + ".begins");
    initial->setAlignment(alignment);
    return initial;
}

// The layout of libgcc's __emutls_object: {size, alignment, the location of the threads' copies (set by libgcc), template}.
llvm::GlobalVariable* control_of(llvm::GlobalVariable& variable) {
    llvm::Module& module = *variable.getParent();
    auto* word = llvm::Type::getInt64Ty(module.getContext());
    auto* pointer = llvm::PointerType::getUnqual(module.getContext());
    auto* type = llvm::StructType::get(word, word, pointer, pointer);
    const std::string name = (kControlPrefix + llvm::GlobalValue::dropLLVMManglingEscape(variable.getName())).str();
    if (variable.isDeclarationForLinker())
        return llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal(name, type));
    const llvm::DataLayout& layout = module.getDataLayout();
    const llvm::Align alignment =
        std::max(variable.getAlign().valueOrOne(), layout.getABITypeAlign(variable.getValueType()));
    const std::uint64_t bytes = layout.getTypeAllocSize(variable.getValueType());
    auto* value = llvm::ConstantStruct::get(
        type, {llvm::ConstantInt::get(word, bytes), llvm::ConstantInt::get(word, alignment.value()),
               llvm::ConstantPointerNull::get(pointer), template_of(variable, alignment)});
    return new llvm::GlobalVariable(module, type, false, llvm::GlobalValue::InternalLinkage, value, name);
}

// The address is requested at each use and not once in a function, because most functions use it on one path only. The optimiser has joined
// such uses already.
class Lowering {
public:
    explicit Lowering(llvm::Module& module)
        : module_(module), get_address_(module.getOrInsertFunction(kGetAddress, pointer(), pointer())) {
        if (auto* function = llvm::dyn_cast<llvm::Function>(get_address_.getCallee())) function->setDoesNotThrow();
    }

    Status lower(llvm::GlobalVariable& variable) {
        llvm::Constant* whole = &variable;
        llvm::convertUsersOfConstantsToInstructions(whole);
        llvm::GlobalVariable* control = control_of(variable);
        while (!variable.use_empty()) {
            llvm::Use& use = *variable.use_begin();
            if (auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(use.getUser());
                intrinsic != nullptr && intrinsic->getIntrinsicID() == llvm::Intrinsic::threadlocal_address)
                replace(*intrinsic, *control);
            else if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(use.getUser()))
                replace(*instruction, use, *control);
            else
                return fail(ErrorCode::invalid,
                            "the address of the thread-local variable {} is in the initial value of another variable; "
                            "each thread has one of its own",
                            variable.getName().str());
        }
        variable.eraseFromParent();
        return {};
    }

private:
    llvm::PointerType* pointer() { return llvm::PointerType::getUnqual(module_.getContext()); }

    void replace(llvm::IntrinsicInst& asked, llvm::GlobalVariable& control) {
        asked.replaceAllUsesWith(llvm::IRBuilder<>(&asked).CreateCall(get_address_, {&control}));
        asked.eraseFromParent();
    }

    void replace(llvm::Instruction& user, llvm::Use& use, llvm::GlobalVariable& control) {
        auto* phi = llvm::dyn_cast<llvm::PHINode>(&user);
        if (phi == nullptr) {
            use.set(llvm::IRBuilder<>(&user).CreateCall(get_address_, {&control}));
            return;
        }
        // If a block is named twice, both entries must have one value.
        llvm::BasicBlock* from = phi->getIncomingBlock(use);
        llvm::Value* address = llvm::IRBuilder<>(from->getTerminator()).CreateCall(get_address_, {&control});
        phi->setIncomingValueForBlock(from, address);
    }

    llvm::Module& module_;
    llvm::FunctionCallee get_address_;
};

}  // namespace

Status lower_thread_locals(llvm::Module& module) {
    std::vector<llvm::GlobalVariable*> variables;
    for (llvm::GlobalVariable& variable : module.globals())
        if (variable.isThreadLocal()) variables.push_back(&variable);
    if (variables.empty()) return {};
    Lowering lowering(module);
    for (llvm::GlobalVariable* variable : variables) ROVE_CHECK(lowering.lower(*variable));
    return {};
}

}  // namespace rove::bitcode
