#include "bitcode/package/library_functions.hpp"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/TargetParser/Triple.h>

#include "bitcode/emit.hpp"
#include "bitcode/values.hpp"

namespace rove::bitcode {

LibraryFunctions::LibraryFunctions(llvm::Module& module) : module_(module) {
    const llvm::TargetLibraryInfoImpl known(llvm::Triple(module.getTargetTriple()));
    const llvm::TargetLibraryInfo library(known);
    for (const llvm::Function& function : module)
        if (llvm::LibFunc which{};
            !function.isDeclaration() && !function.hasLocalLinkage() && library.getLibFunc(function, which))
            names_.push_back(function.getName().str());
}

void LibraryFunctions::begin() {
    for (const std::string& name : names_) {
        llvm::Function* const function = module_.getFunction(name);
        if (function == nullptr || function->isDeclaration() || !function->hasLocalLinkage()) continue;
        make_hidden(*function);
        begun_.push_back(function);
    }
}

void LibraryFunctions::end() {
    for (llvm::Function* const function : begun_) make_internal(*function);
    if (!begun_.empty()) leave_out_unreached(module_);
    begun_.clear();
}

}  // namespace rove::bitcode
