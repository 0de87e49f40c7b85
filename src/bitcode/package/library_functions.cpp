#include "bitcode/package/library_functions.hpp"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <memory>
#include <utility>

#include "bitcode/emit.hpp"
#include "bitcode/library_calls.hpp"
#include "bitcode/values.hpp"

namespace rove::bitcode {
namespace {

// A function of the same type and without a name that calls this one.
llvm::Function* make_caller(llvm::Function& called) {
    llvm::LLVMContext& context = called.getContext();
    auto* const caller = llvm::Function::Create(called.getFunctionType(), llvm::GlobalValue::ExternalLinkage,
                                                called.getAddressSpace(), "", called.getParent());
    const llvm::AttributeList attributes = called.getAttributes().removeFnAttributes(context);
    caller->setAttributes(attributes);
    caller->setCallingConv(called.getCallingConv());
    if (called.doesNotThrow()) caller->setDoesNotThrow();
    llvm::IRBuilder<> code(llvm::BasicBlock::Create(context, "", caller));
    llvm::SmallVector<llvm::Value*, 4> passed;
    for (llvm::Argument& argument : caller->args()) passed.push_back(&argument);
    llvm::CallInst* const call = code.CreateCall(&called, passed);
    call->setAttributes(attributes);
    call->setCallingConv(called.getCallingConv());
    call->setTailCall();
    if (call->getType()->isVoidTy())
        code.CreateRetVoid();
    else
        code.CreateRet(call);
    return caller;
}

// A second name would be lost with the others (restrict_to()).
void make_function(llvm::GlobalAlias& alias, llvm::Function& aliasee) {
    llvm::Function* const own = make_caller(aliasee);
    own->setLinkage(alias.getLinkage());
    own->setVisibility(alias.getVisibility());
    alias.replaceAllUsesWith(own);
    own->takeName(&alias);
    alias.eraseFromParent();
}

bool is_of_memory(llvm::StringRef name) {
    return name == "memcpy" || name == "memmove" || name == "memset";
}

// Calls a function instead of executing an instruction, for each element if it is of vectors. Does nothing where their types differ.
void call_for(llvm::Instruction& instruction, llvm::Function& function) {
    const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
    llvm::SmallVector<llvm::Value*, 3> given;
    llvm::SmallVector<llvm::Type*, 3> types;
    auto* const intrinsic = llvm::dyn_cast<llvm::CallBase>(&instruction);
    for (llvm::Use& each : intrinsic != nullptr ? intrinsic->args() : instruction.operands()) {
        if (each->getType()->isMetadataTy()) continue;  // the rounding of a constrained intrinsic
        given.push_back(each);
        types.push_back(vector != nullptr ? each->getType()->getScalarType() : each->getType());
    }
    llvm::Type* const result = vector != nullptr ? vector->getElementType() : instruction.getType();
    if (function.getFunctionType() != llvm::FunctionType::get(result, types, false)) return;
    llvm::IRBuilder<> code(&instruction);
    const auto call = [&](const auto& element) -> llvm::Value* {
        llvm::SmallVector<llvm::Value*, 3> passed;
        for (llvm::Value* const each : given) passed.push_back(element(each));
        llvm::CallInst* const made = code.CreateCall(&function, passed);
        made->setCallingConv(function.getCallingConv());
        if (instruction.getFunction()->hasFnAttribute(llvm::Attribute::StrictFP))
            made->addFnAttr(llvm::Attribute::StrictFP);
        return made;
    };
    llvm::Value* value = vector != nullptr ? llvm::PoisonValue::get(instruction.getType()) : nullptr;
    for (unsigned i = 0; vector != nullptr && i < vector->getNumElements(); ++i)
        value = code.CreateInsertElement(value, call([&](llvm::Value* each) {
                                             return each->getType()->isVectorTy() ? code.CreateExtractElement(each, i)
                                                                                  : each;
                                         }),
                                         i);
    if (vector == nullptr) value = call([](llvm::Value* each) { return each; });
    instruction.replaceAllUsesWith(value);
    instruction.eraseFromParent();
}

}  // namespace

LibraryFunctions::LibraryFunctions(llvm::Module& module) : module_(module) {
    const llvm::TargetLibraryInfoImpl known(llvm::Triple(module.getTargetTriple()));
    const llvm::TargetLibraryInfo library(known);
    llvm::LibFunc which{};
    for (llvm::GlobalAlias& alias : llvm::make_early_inc_range(module.aliases()))
        if (auto* const function = llvm::dyn_cast<llvm::Function>(alias.getAliasee());
            function != nullptr && !alias.hasLocalLinkage() && !function->isVarArg() &&
            library.getLibFunc(alias.getName(), which))
            make_function(alias, *function);
    for (const llvm::Function& function : module)
        if (!function.isDeclaration() && !function.hasLocalLinkage() && library.getLibFunc(function, which))
            names_.push_back(function.getName().str());
}

void LibraryFunctions::begin() {
    for (const std::string& name : names_) {
        llvm::Function* const function = module_.getFunction(name);
        if (function == nullptr || function->isDeclaration() || !function->hasLocalLinkage()) continue;
        make_hidden(*function);
        begun_.emplace_back(function);
    }
}

void LibraryFunctions::end() {
    if (begun_.empty()) return;
    const Names calls = library_calls_of(module_);
    for (const llvm::WeakVH& each : begun_) {
        auto* const function = llvm::cast_or_null<llvm::Function>(static_cast<llvm::Value*>(each));
        if (function == nullptr || function->isDeclaration()) continue;
        make_internal(*function);
        const std::string name = function->getName().str();
        if (!calls.contains(name)) continue;
        function->setName(name + ".own");
        llvm::Function* const by_name = make_caller(*function);
        by_name->setName(name);
        make_hidden(*by_name);
        called_.emplace(name, Called{.by_name = by_name, .own = function});
    }
    begun_.clear();
    drop_uncalled();
}

Status LibraryFunctions::settle(llvm::TargetMachine& machine) {
    if (called_.empty()) return {};
    const std::unique_ptr<llvm::Module> trial = llvm::CloneModule(module_);
    for (const auto& [name, called] : called_) {
        llvm::Function* const declared = trial->getFunction(name);
        declared->deleteBody();
        // An object has all names that are declared hidden.
        declared->setVisibility(llvm::GlobalValue::DefaultVisibility);
    }
    ROVE_TRY(const ByteBuffer object, write_object(*trial, machine));
    ROVE_TRY(const std::vector<std::string> undefined, undefined_names({object}));
    const Names calls(undefined.begin(), undefined.end());
    Names not_called;
    for (const auto& [name, called] : called_)
        if (!is_of_memory(name) && !calls.contains(name)) not_called.insert(name);
    for (llvm::Function& function : module_)
        for (llvm::Instruction& each : llvm::make_early_inc_range(llvm::instructions(function)))
            if (const std::string name = library_call_of(each); calls.contains(name))
                if (const auto called = called_.find(name); called != called_.end())
                    call_for(each, *called->second.own);
    drop_uncalled(not_called);
    return {};
}

void LibraryFunctions::drop_uncalled(const Names& not_called) {
    std::size_t dropped = 0;
    do {
        leave_out_unreached(module_);  // its calls do not count
        const Names calls = library_calls_of(module_);
        dropped = std::erase_if(called_, [&](const auto& each) {
            if (calls.contains(each.first) && !not_called.contains(each.first)) return false;
            each.second.by_name->eraseFromParent();
            return true;
        });
    } while (dropped != 0);
}

std::vector<std::string> LibraryFunctions::called() const {
    std::vector<std::string> names;
    for (const auto& [name, called] : called_) names.push_back(name);
    return names;
}

}  // namespace rove::bitcode
