#include "code/jit/inline_early.hpp"

#include <llvm/ADT/SCCIterator.h>
#include <llvm/Analysis/CallGraph.h>
#include <llvm/Analysis/InlineCost.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <unordered_map>

#include "code/jit/analyses.hpp"

namespace rove::code::jit {
namespace {

// Instructions, as they come from the compiler: one that is called once is not doubled, but may swell its caller.
constexpr unsigned kTiny = 15, kCalledOnce = 500;
// Bytes of a callee's variables. LLVM's inliner refuses more than 1 KiB in a function that calls itself, and is not asked here; it sees
// no recursion by way of pointers, so that bound holds everywhere.
constexpr std::uint64_t kFrame = 1024, kFrameInRecursion = 256;
constexpr std::uint64_t kNoBound = std::numeric_limits<std::uint32_t>::max();

bool goes_into_callers(llvm::Function& function) {
    if (function.isDeclaration() || !function.hasLocalLinkage() || function.isVarArg()) return false;
    if (function.hasFnAttribute(llvm::Attribute::Cold)) return false;
    const bool only_called = std::all_of(function.use_begin(), function.use_end(), [](const llvm::Use& use) {
        const auto* call = llvm::dyn_cast<llvm::CallBase>(use.getUser());
        return call != nullptr && call->isCallee(&use);
    });
    return only_called && function.getInstructionCount() <= (function.hasOneUse() ? kCalledOnce : kTiny) &&
           llvm::isInlineViable(function).isSuccess();
}

std::uint64_t bytes_of(const llvm::AllocaInst& variable) {
    const auto size = variable.getAllocationSize(variable.getDataLayout());
    // One whose size or number is known when it runs only.
    if (!variable.isStaticAlloca() || !size || size->isScalable()) return kNoBound;
    return std::min<std::uint64_t>(size->getFixedValue(), kNoBound);
}

// Marks the calls that are to be inlined. Callees first, so that what goes into them counts where they go.
class Marking {
public:
    Marking(llvm::Module& module, llvm::FunctionAnalysisManager& analyses) : module_(module), analyses_(analyses) {}

    // Whether there is any.
    bool mark() {
        for (llvm::Function& function : module_) {
            std::uint64_t& frame = frames_[&function];
            for (const llvm::BasicBlock& block : function)
                for (const llvm::Instruction& each : block)
                    if (const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&each)) frame += bytes_of(*variable);
            if (goes_into_callers(function)) inlined_.insert(&function);
        }
        if (inlined_.empty()) return false;
        llvm::CallGraph graph(module_);
        for (auto component = llvm::scc_begin(&graph); !component.isAtEnd(); ++component)
            for (const llvm::CallGraphNode* node : *component)
                if (node->getFunction() != nullptr) mark_in(*node->getFunction(), component.hasCycle());
        return any_;
    }

private:
    void mark_in(llvm::Function& caller, bool recursive) {
        for (llvm::BasicBlock& block : caller)
            for (llvm::Instruction& each : block) {
                auto* const call = llvm::dyn_cast<llvm::CallBase>(&each);
                llvm::Function* const callee = call != nullptr ? call->getCalledFunction() : nullptr;
                if (callee == nullptr || callee == &caller || !inlined_.contains(callee)) continue;
                const std::uint64_t frame = frames_[callee];
                if (frame > (recursive ? kFrameInRecursion : kFrame) || !is_safe(*call, *callee)) continue;
                call->addFnAttr(llvm::Attribute::AlwaysInline);
                frames_[&caller] += frame;
                any_ = true;
            }
    }

    // Whether LLVM's inliner would do it, too, if it thought that it pays: attributes and features of the CPU agree.
    bool is_safe(llvm::CallBase& call, llvm::Function& callee) {
        const auto library = [this](llvm::Function& function) -> const llvm::TargetLibraryInfo& {
            return analyses_.getResult<llvm::TargetLibraryAnalysis>(function);
        };
        const auto decided = llvm::getAttributeBasedInliningDecision(
            call, &callee, analyses_.getResult<llvm::TargetIRAnalysis>(callee), library);
        return !decided || decided->isSuccess();
    }

    llvm::Module& module_;
    llvm::FunctionAnalysisManager& analyses_;
    std::unordered_map<const llvm::Function*, std::uint64_t> frames_;  // bytes of their variables
    llvm::SmallPtrSet<const llvm::Function*, 16> inlined_;
    bool any_ = false;
};

}  // namespace

void inline_early(llvm::Module& module, llvm::TargetMachine& machine) {
    llvm::PassBuilder builder(&machine);
    Analyses analyses(builder);
    if (!Marking(module, analyses.functions).mark()) return;
    analyses.functions.clear();
    llvm::ModulePassManager passes;
    passes.addPass(llvm::AlwaysInlinerPass());
    passes.run(module, analyses.modules);
    analyses.functions.clear();
    for (llvm::Function& function : llvm::make_early_inc_range(module)) {
        if (function.hasLocalLinkage() && function.isDefTriviallyDead()) {
            function.eraseFromParent();
            continue;
        }
        // What could not be done is for the optimiser to decide.
        for (llvm::BasicBlock& block : function)
            for (llvm::Instruction& each : block)
                if (auto* call = llvm::dyn_cast<llvm::CallBase>(&each))
                    call->removeFnAttr(llvm::Attribute::AlwaysInline);
    }
}

}  // namespace rove::code::jit
