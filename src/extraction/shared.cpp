#include "extraction/shared.hpp"

#include <llvm/Analysis/LazyCallGraph.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/IPO/FunctionAttrs.h>
#include <llvm/Transforms/IPO/Inliner.h>

#include <optional>
#include <utility>

#include "base/mangled.hpp"
#include "bitcode/allocation.hpp"
#include "bitcode/analyses.hpp"
#include "bitcode/emit.hpp"
#include "bitcode/optimised.hpp"

namespace rove::bitcode {
namespace {

// Inline functions and instances of templates, except those that are made for one sent function.
bool may_be_shared(const llvm::Function& function) {
    return (function.hasLinkOnceODRLinkage() || function.hasAvailableExternallyLinkage()) && !function.hasOptNone() &&
           !function.isPresplitCoroutine() && !function.getName().contains("4rove6detail7OffloadI") &&
           !function.getName().contains("4rove6detail2FnI");
}

// During its lifetime, LLVM's passes treat a module that was read in part as a whole one, and remove no function: bodies that are read
// later may refer to any.
class AsAWhole {
public:
    AsAWhole(llvm::Module& module, const std::unordered_set<const llvm::Function*>& shared) {
        for (llvm::Function& function : module) {
            if (function.isMaterializable()) {
                function.setIsMaterializable(false);  // a declaration, for now
                unread_.push_back(&function);
            } else if (!function.isDeclaration()) {
                // Each package checks whether a sent function can travel, so its code is merged into no other function.
                const bool sent =
                    names_offload(function.getName()) && !function.hasFnAttribute(llvm::Attribute::NoInline);
                if (sent) function.addFnAttr(llvm::Attribute::NoInline);
                changed_.push_back({&function, function.getLinkage(), sent});
                function.setLinkage(shared.contains(&function) ? llvm::GlobalValue::WeakODRLinkage
                                                               : llvm::GlobalValue::ExternalLinkage);
            }
        }
    }
    AsAWhole(const AsAWhole&) = delete;
    ~AsAWhole() {
        for (llvm::Function* function : unread_) function->setIsMaterializable(true);
        for (const Changed& each : changed_) {
            each.function->setLinkage(each.linkage);
            if (each.sent) each.function->removeFnAttr(llvm::Attribute::NoInline);
        }
    }

private:
    struct Changed {
        llvm::Function* function;
        llvm::GlobalValue::LinkageTypes linkage;
        bool sent;
    };
    std::vector<llvm::Function*> unread_;
    std::vector<Changed> changed_;
};

// Runs the part of LLVM's own pipeline that treats a module's functions, callees first, up to vectorising.
void optimise_in(llvm::Module& module, llvm::TargetMachine& machine, const std::vector<llvm::Function*>& functions) {
    const std::unordered_set<const llvm::Function*> shared(functions.begin(), functions.end());
    const AsAWhole whole(module, shared);
    llvm::PassInstrumentationCallbacks callbacks;
    callbacks.registerShouldRunOptionalPassCallback([&](llvm::StringRef, const llvm::Any& code) {
        return llvm::any_cast<const llvm::Module*>(&code) != nullptr ||
               holds_for_all(code, [&](const llvm::Function& function) { return shared.contains(&function); });
    });
    llvm::PassBuilder builder(&machine, llvm::PipelineTuningOptions(), std::nullopt, &callbacks);
    Analyses analyses(builder);
    constexpr auto kPhase = llvm::ThinOrFullLTOPhase::None;
    llvm::ModuleInlinerWrapperPass passes(llvm::getInlineParams(2, 0), /*MandatoryFirst=*/true,
                                          llvm::InlineContext{kPhase, llvm::InlinePass::CGSCCInliner},
                                          llvm::InliningAdvisorMode::Default, /*MaxDevirtIterations=*/4);
    llvm::CGSCCPassManager& components = passes.getPM();
    components.addPass(llvm::PostOrderFunctionAttrsPass(/*SkipNonRecursive=*/true));
    components.addPass(llvm::createCGSCCToFunctionPassAdaptor(
        builder.buildFunctionSimplificationPipeline(llvm::OptimizationLevel::O2, kPhase), /*EagerlyInvalidate=*/false,
        /*NoRerun=*/true));
    components.addPass(llvm::PostOrderFunctionAttrsPass());
    components.addPass(llvm::createCGSCCToFunctionPassAdaptor(
        llvm::RequireAnalysisPass<llvm::ShouldNotRunFunctionPassesAnalysis, llvm::Function>()));
    (void)passes.run(module, analyses.modules);
    for (llvm::Function* function : functions) mark_optimised(*function);
}

void add_constants(const llvm::User& user, std::vector<const llvm::Value*>& rest) {
    for (const llvm::Use& operand : user.operands())
        if (llvm::isa<llvm::Constant>(operand)) rest.push_back(operand);
}

}  // namespace

Status SharedCode::optimise(const std::vector<const llvm::Function*>& roots) {
    InModules shared;
    ROVE_CHECK(find({roots.begin(), roots.end()}, shared));
    for (const auto& [index, functions] : shared) {
        ROVE_TRY(llvm::Module* const module, program_.get(index));
        ROVE_TRY(const auto machine, target_machine(module->getTargetTriple()));
        optimise_in(*module, *machine, functions);
    }
    return {};
}

// Reads all that these reach, by calls, by addresses and as initialisers of variables.
Status SharedCode::find(std::vector<const llvm::Value*> rest, InModules& shared) {
    std::unordered_set<const llvm::Value*>
        seen;  // constants may be freed by the optimiser, and others may get their addresses
    while (!rest.empty()) {
        const llvm::Value* next = rest.back();
        rest.pop_back();
        if (!seen.insert(next).second) continue;
        if (const auto* const met = llvm::dyn_cast<llvm::GlobalValue>(next)) {
            ROVE_TRY(const llvm::GlobalValue* const value, program_.definition_of(*met));
            if (replaces_allocation(*value, program_.replaces_malloc()) || !reached_.insert(value).second) continue;
            next = value;
        }
        if (const auto* const function = llvm::dyn_cast<llvm::Function>(next);
            function != nullptr && !function->isDeclaration()) {
            ROVE_CHECK(read(const_cast<llvm::Function&>(*function), shared));
            for (const llvm::Instruction& each : llvm::instructions(*function)) {
                add_constants(each, rest);
                ROVE_TRY(const llvm::GlobalValue* const called, program_.called_for(each));
                if (called != nullptr) rest.push_back(called);
            }
        }
        if (const auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(next))
            for (const Modules::Constructor& each : program_.constructors_of(*variable)) rest.push_back(each.function);
        add_constants(*llvm::cast<llvm::User>(next), rest);
    }
    return {};
}

Status SharedCode::read(llvm::Function& function, InModules& shared) {
    ROVE_CHECK(program_.read_body(function));
    program_.simplify(function);
    if (may_be_shared(function) && !FunctionSimplifier::without_exceptions(*function.getParent()))
        shared[Modules::index_of(*function.getParent())].push_back(&function);
    return {};
}

}  // namespace rove::bitcode
