#include "bitcode/optimised.hpp"

#include "bitcode/emit.hpp"
#include "bitcode/values.hpp"

namespace rove::bitcode {
namespace {

constexpr llvm::StringLiteral kOptimised = "rove.optimised";
// Size in instructions. 100 functions with containers took as long with any number from 30 to 100, and had the least code with 60 and more.
constexpr unsigned kLarge = 60;

// A pass that notes that it has been reached.
struct Notes : llvm::PassInfoMixin<Notes> {
    bool* yes;
    llvm::PreservedAnalyses run(llvm::Module& /*module*/, llvm::ModuleAnalysisManager& /*analyses*/) const {
        *yes = true;
        return llvm::PreservedAnalyses::all();
    }
};

}  // namespace

void mark_optimised(llvm::Function& function) {
    function.addFnAttr(kOptimised);
}

bool is_optimised(const llvm::Function& function) {
    return function.hasFnAttribute(kOptimised);
}

bool holds_for_all(const llvm::Any& code, llvm::function_ref<bool(const llvm::Function&)> test) {
    if (const auto* function = llvm::any_cast<const llvm::Function*>(&code)) return test(**function);
    if (const auto* loop = llvm::any_cast<const llvm::Loop*>(&code)) return test(*(*loop)->getHeader()->getParent());
    if (const auto* component = llvm::any_cast<const llvm::LazyCallGraph::SCC*>(&code))
        return llvm::all_of(**component, [&](llvm::LazyCallGraph::Node& node) { return test(node.getFunction()); });
    return false;
}

Apart::Apart(llvm::Module& module) : module_(module) {
    for (llvm::Function& function : module) {
        if (!is_optimised(function) || !function.hasLocalLinkage() || function.getInstructionCount() < kLarge) continue;
        make_hidden(function);
        functions_.emplace_back(&function);
    }
}

void Apart::end() {
    for (llvm::Function* function : left()) make_internal(*function);
    for (llvm::Function& function : module_) function.removeFnAttr(kOptimised);
    leave_out_unreached(module_);
}

std::vector<llvm::Function*> Apart::left() const {
    std::vector<llvm::Function*> left;
    for (const llvm::WeakVH& each : functions_)
        if (llvm::Value* const value = each) left.push_back(llvm::cast<llvm::Function>(value));
    return left;
}

LeaveOptimised::LeaveOptimised(llvm::PassInstrumentationCallbacks& callbacks, llvm::PassBuilder& pipeline) {
    callbacks.registerShouldRunOptionalPassCallback([this](llvm::StringRef pass, const llvm::Any& code) {
        // When a function was optimised before (shared.hpp), the effects that it does not have were not noted: this pass determines them.
        return at_last_passes_ || pass == "PostOrderFunctionAttrsPass" || !holds_for_all(code, is_optimised);
    });
    pipeline.registerOptimizerEarlyEPCallback(
        [this](llvm::ModulePassManager& passes, llvm::OptimizationLevel /*level*/) {
            passes.addPass(Notes{{}, &at_last_passes_});
        });
}

}  // namespace rove::bitcode
