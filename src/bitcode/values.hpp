// Helpers for LLVM's modules, functions and types that several parts use.
#pragma once

#include <llvm/IR/Module.h>

#include <algorithm>
#include <string>

namespace rove::bitcode {

// Copies target triple, data layout and module flags, on which code that is moved between modules depends.
inline void describe_as(llvm::Module& module, const llvm::Module& other) {
    module.setTargetTriple(other.getTargetTriple());
    module.setDataLayout(other.getDataLayout());
    const llvm::NamedMDNode* const flags = other.getModuleFlagsMetadata();
    for (unsigned i = 0; flags != nullptr && i < flags->getNumOperands(); ++i)
        module.getOrInsertModuleFlagsMetadata()->addOperand(flags->getOperand(i));
}

// The extensions of the CPU for which the function was compiled, such as "+avx2" or "-sse4a". Valid until the function's are changed.
inline llvm::SmallVector<llvm::StringRef, 32> cpu_features(const llvm::Function& function) {
    llvm::SmallVector<llvm::StringRef, 32> features;
    function.getFnAttribute("target-features").getValueAsString().split(features, ',', -1, false);
    return features;
}

// Removes those for which the test does not hold.
inline void keep_cpu_features(llvm::Function& function, llvm::function_ref<bool(llvm::StringRef)> test) {
    const auto all = cpu_features(function);
    if (llvm::all_of(all, test)) return;
    std::string kept;
    for (const llvm::StringRef feature : all)
        if (test(feature)) kept += (kept.empty() ? "" : ",") + feature.str();
    function.removeFnAttr("target-features");
    if (!kept.empty()) function.addFnAttr("target-features", kept);
}

// Lets other objects and look-ups find a definition by its name, and code in the same object reach it directly.
inline void make_hidden(llvm::GlobalValue& value) {
    value.setLinkage(llvm::GlobalValue::ExternalLinkage);
    value.setVisibility(llvm::GlobalValue::HiddenVisibility);
    value.setDSOLocal(true);
}

// Reverses make_hidden() for a definition that was internal before.
inline void make_internal(llvm::GlobalValue& value) {
    value.setVisibility(llvm::GlobalValue::DefaultVisibility);  // LLVM allows internal values no other
    value.setLinkage(llvm::GlobalValue::InternalLinkage);
}

// Whether it is a variable that the code writes, one for all threads.
[[nodiscard]] inline bool is_static(const llvm::GlobalVariable& variable) {
    return !variable.isDeclaration() && !variable.isConstant() && !variable.isThreadLocal() &&
           !variable.getName().starts_with("llvm.");
}

[[nodiscard]] inline bool may_hold_pointers(const llvm::Type& type) {
    return type.isPointerTy() || std::any_of(type.subtype_begin(), type.subtype_end(),
                                             [](const llvm::Type* part) { return may_hold_pointers(*part); });
}

}  // namespace rove::bitcode
