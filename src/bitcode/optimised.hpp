// Functions that were optimised before they were added to a package (extraction/shared.hpp): an attribute marks each of them.
//
// Threads: one at a time for each LLVM context, as for LLVM's modules.
//
// Invariant: between Apart's constructor and end() the larger shared functions are external; before and after they are internal.
#pragma once

#include <llvm/Analysis/LazyCallGraph.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/IR/ValueHandle.h>
#include <llvm/Passes/PassBuilder.h>

#include <vector>

// LLVM identifies the types of what it passes to callbacks by the addresses of these, which must be LLVM's, not this library's.
extern template struct __attribute__((visibility("default"))) llvm::Any::TypeId<const llvm::Module*>;
extern template struct __attribute__((visibility("default"))) llvm::Any::TypeId<const llvm::LazyCallGraph::SCC*>;
extern template struct __attribute__((visibility("default"))) llvm::Any::TypeId<const llvm::Function*>;
extern template struct __attribute__((visibility("default"))) llvm::Any::TypeId<const llvm::Loop*>;

namespace rove::bitcode {

// The mark is kept when the function is copied and when it is written as bitcode.
void mark_optimised(llvm::Function& function);
[[nodiscard]] bool is_optimised(const llvm::Function& function);

// Whether the test holds for each function on which a pass is about to run. False for a pass that runs on a whole module.
[[nodiscard]] bool holds_for_all(const llvm::Any& code, llvm::function_ref<bool(const llvm::Function&)> test);

// While a package is optimised, its larger shared functions are external, so that the inliner does not merge one into its only caller and every
// package has the same ones. Smaller ones are inlined like others.
class Apart {
public:
    explicit Apart(llvm::Module& module);
    // Makes them internal again, and removes those that have no caller. No function counts as optimised afterwards.
    void end();
    // The functions of these that have not been removed. To be called after end().
    [[nodiscard]] std::vector<llvm::Function*> left() const;

private:
    llvm::Module& module_;
    std::vector<llvm::WeakVH> functions_;
};

// Excludes optimised functions from LLVM's pipeline, except for its last passes (vectorising), which have not been run on them. Exists as long
// as the pipeline, which runs once.
class LeaveOptimised {
public:
    LeaveOptimised(llvm::PassInstrumentationCallbacks& callbacks, llvm::PassBuilder& pipeline);
    LeaveOptimised(const LeaveOptimised&) = delete;

private:
    bool at_last_passes_ = false;
};

}  // namespace rove::bitcode
