#include "bitcode/package/inline_early.hpp"

#include <llvm/ADT/SCCIterator.h>
#include <llvm/Analysis/CallGraph.h>
#include <llvm/Analysis/InlineCost.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "bitcode/analyses.hpp"
#include "bitcode/optimised.hpp"

namespace rove::bitcode {
namespace {

// Sizes in instructions, before optimisation: a function that is called once is not duplicated, but may enlarge its caller.
constexpr unsigned kTiny = 15, kCalledOnce = 500;
// Bytes of a callee's variables. LLVM's inliner refuses more than 1 KiB in a function that calls itself, and is not used here; it does not
// detect recursion by way of pointers, so that bound applies everywhere.
constexpr std::uint64_t kFrame = 1024, kFrameInRecursion = 256;
constexpr std::uint64_t kNoBound = std::numeric_limits<std::uint32_t>::max();

bool goes_into_callers(llvm::Function& function) {
    if (function.isDeclaration() || !function.hasLocalLinkage() || function.isVarArg()) return false;
    if (function.hasFnAttribute(llvm::Attribute::Cold) || function.isPresplitCoroutine()) return false;
    const bool only_called = std::all_of(function.use_begin(), function.use_end(), [](const llvm::Use& use) {
        const auto* call = llvm::dyn_cast<llvm::CallBase>(use.getUser());
        return call != nullptr && call->isCallee(&use);
    });
    return only_called && function.getInstructionCount() <= (function.hasOneUse() ? kCalledOnce : kTiny) &&
           llvm::isInlineViable(function).isSuccess();
}

std::uint64_t bytes_of(const llvm::AllocaInst& variable) {
    const auto size = variable.getAllocationSize(variable.getDataLayout());
    // Its size or number is only known at run time.
    if (!variable.isStaticAlloca() || !size || size->isScalable()) return kNoBound;
    return std::min<std::uint64_t>(size->getFixedValue(), kNoBound);
}

// Chooses the calls to be inlined, callees first, so that calls inlined into them count in their callers.
class Choice {
public:
    Choice(llvm::Module& module, llvm::FunctionAnalysisManager& analyses) : module_(module), analyses_(analyses) {}

    [[nodiscard]] const std::vector<llvm::CallBase*>& choose() {
        for (llvm::Function& function : module_) {
            std::uint64_t& frame = frames_[&function];
            for (const llvm::BasicBlock& block : function)
                for (const llvm::Instruction& each : block)
                    if (const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&each)) frame += bytes_of(*variable);
            if (goes_into_callers(function)) inlined_.insert(&function);
        }
        if (inlined_.empty()) return chosen_;
        llvm::CallGraph graph(module_);
        for (auto component = llvm::scc_begin(&graph); !component.isAtEnd(); ++component)
            for (const llvm::CallGraphNode* node : *component)
                if (node->getFunction() != nullptr) choose_in(*node->getFunction(), component.hasCycle());
        return chosen_;
    }

private:
    void choose_in(llvm::Function& caller, bool recursive) {
        if (is_optimised(caller)) return;  // no later pass would simplify it
        for (llvm::BasicBlock& block : caller)
            for (llvm::Instruction& each : block) {
                auto* const call = llvm::dyn_cast<llvm::CallBase>(&each);
                llvm::Function* const callee = call != nullptr ? call->getCalledFunction() : nullptr;
                if (callee == nullptr || callee == &caller || !inlined_.contains(callee)) continue;
                const std::uint64_t frame = frames_[callee];
                if (frame > (recursive ? kFrameInRecursion : kFrame) || !is_safe(*call, *callee)) continue;
                chosen_.push_back(call);
                frames_[&caller] += frame;
            }
    }

    // Whether LLVM's inliner could do it, regardless of its cost model: attributes and features of the CPU agree.
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
    std::vector<llvm::CallBase*> chosen_;
};

}  // namespace

void inline_early(llvm::Module& module, llvm::TargetMachine& machine) {
    llvm::PassBuilder builder(&machine);
    Analyses analyses(builder);
    Choice choice(module, analyses.functions);
    // LLVM's AlwaysInlinerPass is not used: after each call it recomputes how often the caller's blocks run, which took a fifth of a
    // build's time, and nothing here needs that. Calls that cannot be inlined are left to the optimiser.
    for (llvm::CallBase* call : choice.choose()) {
        llvm::InlineFunctionInfo nothing_is_known;
        (void)llvm::InlineFunction(*call, nothing_is_known, /*MergeAttributes=*/true);
    }
    analyses.functions.clear();
    for (llvm::Function& function : llvm::make_early_inc_range(module))
        if (function.hasLocalLinkage() && function.isDefTriviallyDead()) function.eraseFromParent();
}

}  // namespace rove::bitcode
