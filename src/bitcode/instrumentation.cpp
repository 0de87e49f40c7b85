#include "bitcode/instrumentation.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Local.h>

namespace rove::bitcode {
namespace {

// Attributes that make LLVM's passes add calls, sleds or another stack to a function.
constexpr llvm::StringLiteral kAddingByName[] = {
    // -pg, -mfentry, -finstrument-functions: mcount reads its caller's frame pointer, which travelling code does not keep
    "instrument-function-entry",
    "instrument-function-entry-inlined",
    "instrument-function-exit",
    "instrument-function-exit-inlined",
    "fentry-call",
    "mnop-mcount",
    "mrecord-mcount",
    // -fxray-instrument
    "function-instrument",
    "xray-instruction-threshold",
    "xray-ignore-loops",
    "xray-log-args",
    "xray-skip-entry",
    "xray-skip-exit",
    // -fpatchable-function-entry, and hot patching
    "patchable-function",
    "patchable-function-entry",
    "patchable-function-prefix",
    // -fzero-call-used-regs: with =all LLVM zeroes registers of AVX-512 that hold results, and a node may have these if the build machine
    // has not
    "zero-call-used-regs",
    // -fsplit-stack: the prologue requests room from the thread's runtime
    "split-stack",
    "stack-protector-buffer-size",
};
constexpr llvm::Attribute::AttrKind kAdding[] = {
    llvm::Attribute::SanitizeAddress,
    llvm::Attribute::SanitizeThread,
    llvm::Attribute::SanitizeMemory,
    llvm::Attribute::SanitizeHWAddress,
    llvm::Attribute::SanitizeMemTag,
    llvm::Attribute::SanitizeNumericalStability,
    llvm::Attribute::SafeStack,  // the second stack is a thread-local variable of the program's runtime
    llvm::Attribute::ShadowCallStack,
    // -fstack-protector: the value that it compares with is the program's own, and the function that it calls then ends the process
    llvm::Attribute::StackProtect,
    llvm::Attribute::StackProtectStrong,
    llvm::Attribute::StackProtectReq,
};

void leave_out_attributes(llvm::Function& function) {
    for (const llvm::StringRef name : kAddingByName) function.removeFnAttr(name);
    for (const auto attribute : kAdding) function.removeFnAttr(attribute);
    function.eraseMetadata(llvm::LLVMContext::MD_kcfi_type);
}

// The pointer that a check of control flow loads, without the check.
llvm::Value* loaded_unchecked(llvm::IntrinsicInst& check) {
    llvm::IRBuilder<> code(&check);
    llvm::Value* table = check.getArgOperand(0);
    llvm::Value* offset = check.getArgOperand(1);
    auto* pair = check.getType();
    auto* pointer = pair->getStructElementType(0);
    llvm::Value* value =
        check.getIntrinsicID() == llvm::Intrinsic::type_checked_load
            ? static_cast<llvm::Value*>(code.CreateLoad(pointer, code.CreatePtrAdd(table, offset)))
            : code.CreateIntrinsic(llvm::Intrinsic::load_relative, {offset->getType()}, {table, offset});
    llvm::Value* whole = code.CreateInsertValue(llvm::PoisonValue::get(pair), value, 0);
    return code.CreateInsertValue(whole, code.getTrue(), 1);
}

void leave_out_call(llvm::IntrinsicInst& call) {
    switch (call.getIntrinsicID()) {
        case llvm::Intrinsic::type_test:
        case llvm::Intrinsic::public_type_test:
            call.replaceAllUsesWith(llvm::ConstantInt::getTrue(call.getContext()));
            break;
        case llvm::Intrinsic::type_checked_load:
        case llvm::Intrinsic::type_checked_load_relative: call.replaceAllUsesWith(loaded_unchecked(call)); break;
        default:
            // Calls that count return nothing.
            if (!call.getCalledFunction()->getName().starts_with("llvm.instrprof.") || !call.getType()->isVoidTy())
                return;
    }
    call.eraseFromParent();
}

// Functions of the runtimes that count. They return nothing, or the status 0.
constexpr llvm::StringLiteral kCounting[] = {"__gcov_dump", "__gcov_reset", "__llvm_profile_dump",
                                             "__llvm_profile_reset_counters", "__llvm_profile_write_file"};

// Whether a call only reports to a runtime that does not travel: a destructor reports the destroyed object (-fsanitize=memory), or a program
// requests that its counters be written.
bool reports_to_runtime(const llvm::CallBase& call) {
    const llvm::Function* called = call.getCalledFunction();
    if (called == nullptr || !called->isDeclaration()) return false;
    const llvm::Type* result = call.getType();
    if (called->getName().starts_with("__sanitizer_dtor_callback")) return result->isVoidTy();
    return (result->isVoidTy() || result->isIntegerTy()) && llvm::is_contained(kCounting, called->getName());
}

void leave_out_calls(llvm::Function& function) {
    for (llvm::BasicBlock& block : function)
        for (llvm::Instruction& each : llvm::make_early_inc_range(block)) {
            if (auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&each)) {
                leave_out_call(*intrinsic);
                continue;
            }
            auto* call = llvm::dyn_cast<llvm::CallBase>(&each);
            if (call != nullptr && reports_to_runtime(*call)) {
                // It ends its block if something must be destroyed when it throws.
                if (auto* invoke = llvm::dyn_cast<llvm::InvokeInst>(call)) call = llvm::changeToCall(invoke);
                if (!call->getType()->isVoidTy()) call->replaceAllUsesWith(llvm::ConstantInt::get(call->getType(), 0));
                call->eraseFromParent();
                continue;
            }
            if (call == nullptr || !call->getOperandBundle(llvm::LLVMContext::OB_kcfi)) continue;
            // -fsanitize=kcfi: functions of the node's libraries have no such number before them.
            llvm::CallBase* plain =
                llvm::CallBase::removeOperandBundle(call, llvm::LLVMContext::OB_kcfi, call->getIterator());
            plain->takeName(call);
            plain->copyMetadata(*call);
            call->replaceAllUsesWith(plain);
            call->eraseFromParent();
        }
}

// -fsanitize=kcfi: the numbers of functions declared elsewhere whose address is taken, as a weak symbol and its value each.
void leave_out_assembly(llvm::Module& module) {
    std::string kept;
    llvm::StringRef left = module.getModuleInlineAsm();
    while (!left.empty()) {
        const auto [line, rest] = left.split('\n');
        left = rest;
        const llvm::StringRef text = line.trim();
        if (text.starts_with(".weak __kcfi_typeid_") || text.starts_with(".set __kcfi_typeid_")) continue;
        kept.append(line.data(), line.size()).append("\n");
    }
    module.setModuleInlineAsm(kept);
}

}  // namespace

void leave_out_instrumentation(llvm::Module& module) {
    for (llvm::Function& function : module) {
        leave_out_attributes(function);
        leave_out_calls(function);
    }
    leave_out_assembly(module);
}

}  // namespace rove::bitcode
