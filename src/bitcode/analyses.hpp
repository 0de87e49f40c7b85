// LLVM's analyses of one module.
#pragma once

#include <llvm/Passes/PassBuilder.h>

namespace rove::bitcode {

// They outlive the passes that use them.
struct Analyses {
    explicit Analyses(llvm::PassBuilder& builder) {
        builder.registerModuleAnalyses(modules);
        builder.registerCGSCCAnalyses(components);
        builder.registerFunctionAnalyses(functions);
        builder.registerLoopAnalyses(loops);
        builder.crossRegisterProxies(loops, functions, components, modules);
    }
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
};

}  // namespace rove::bitcode
