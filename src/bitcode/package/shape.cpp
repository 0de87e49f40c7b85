#include "bitcode/package/shape.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalIFunc.h>
#include <llvm/Transforms/IPO/Internalize.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/library_statics.hpp"
#include "bitcode/values.hpp"
#include "wire/image.hpp"

namespace rove::bitcode {
namespace {

constexpr llvm::StringRef kEntryMark = "rove.entry";

void erase_variable(llvm::Module& module, llvm::StringRef name) {
    if (llvm::GlobalVariable* variable = module.getNamedGlobal(name)) variable->eraseFromParent();
}

llvm::StringRef text_of(const llvm::Value* pointer) {
    const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(pointer->stripPointerCasts());
    if (variable == nullptr || !variable->hasInitializer()) return {};
    const auto* data = llvm::dyn_cast<llvm::ConstantDataSequential>(variable->getInitializer());
    return data != nullptr && data->isCString() ? data->getAsCString() : llvm::StringRef();
}

void set_flag(llvm::Module& module, llvm::StringRef name, std::uint32_t value) {
    auto* type = llvm::Type::getInt32Ty(module.getContext());
    module.setModuleFlag(llvm::Module::Max, name, llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(type, value)));
}

}  // namespace

Result<std::vector<std::string>> take_entries(llvm::Module& module) {
    // By file, in the order of the files, and line; those of one line in their order.
    std::multimap<std::pair<std::size_t, std::uint64_t>, std::string> marks;
    std::map<const llvm::Value*, std::size_t> files;
    if (const auto* list = module.getNamedGlobal("llvm.global.annotations");
        list != nullptr && list->hasInitializer()) {
        for (const llvm::Use& element : list->getInitializer()->operands()) {
            const auto* mark = llvm::dyn_cast<llvm::ConstantStruct>(element.get());
            if (mark == nullptr || mark->getNumOperands() < 4 || text_of(mark->getOperand(1)) != kEntryMark) continue;
            const auto* function = llvm::dyn_cast<llvm::Function>(mark->getOperand(0)->stripPointerCasts());
            if (function == nullptr || function->isDeclaration()) continue;
            if (function->hasLocalLinkage())
                return fail(ErrorCode::invalid, "{}: a ROVE_ENTRY function cannot be static",
                            function->getName().str());
            const auto* line = llvm::dyn_cast<llvm::ConstantInt>(mark->getOperand(3));
            const auto file = files.try_emplace(mark->getOperand(2), files.size()).first->second;
            marks.emplace(std::pair(file, line != nullptr ? line->getZExtValue() : 0), function->getName().str());
        }
    }
    std::vector<std::string> entries;
    for (const auto& [place, name] : marks)
        if (std::find(entries.begin(), entries.end(), name) == entries.end()) entries.push_back(name);

    for (const char* name : {"llvm.global.annotations", "llvm.used", "llvm.compiler.used"})
        erase_variable(module, name);
    for (llvm::GlobalObject& object : module.global_objects()) {
        // Comdats and separate sections would prevent an image's linker script from arranging them.
        object.setComdat(nullptr);
        if (!object.getName().starts_with("llvm.")) object.setSection("");
    }
    return entries;
}

Status check_entries(const llvm::Module& module, const std::vector<std::string>& entries) {
    for (const std::string& name : entries) {
        const llvm::Function* const entry = module.getFunction(name);
        if (entry == nullptr) continue;
        const llvm::FunctionType& type = *entry->getFunctionType();
        const bool as_called = type.getReturnType()->isVoidTy() && !type.isVarArg() && type.getNumParams() == 3 &&
                               type.getParamType(0)->isPointerTy() && type.getParamType(1)->isPointerTy() &&
                               type.getParamType(2)->isIntegerTy(64);
        if (!as_called)
            return fail(ErrorCode::invalid,
                        "{}: a ROVE_ENTRY function is called as void (rove_here *here, const void *payload, size_t "
                        "size), and this one takes or returns something else",
                        name);
    }
    return {};
}

std::vector<std::string> restrict_to(llvm::Module& module, const std::vector<std::string>& entries, bool interface) {
    const std::set<std::string> entry_names(entries.begin(), entries.end());
    std::vector<std::string> exports;
    std::set<std::string> kept = entry_names;
    const auto consider = [&](const llvm::GlobalValue& value) {
        const bool strong = value.hasExternalLinkage() || value.hasWeakLinkage();
        // Inline functions are not exported: every user has its own.
        if (!interface || value.isDeclaration() || !strong || !value.hasDefaultVisibility() || value.isThreadLocal())
            return;
        if (value.getName().starts_with("llvm.")) return;
        if (kept.insert(value.getName().str()).second) exports.push_back(value.getName().str());
    };
    for (const llvm::Function& function : module) consider(function);
    for (const llvm::GlobalVariable& variable : module.globals()) consider(variable);
    for (const llvm::GlobalAlias& alias : module.aliases()) consider(alias);

    llvm::internalizeModule(module,
                            [&](const llvm::GlobalValue& value) { return kept.contains(value.getName().str()); });
    for (llvm::GlobalIFunc& function : module.ifuncs()) function.setLinkage(llvm::GlobalValue::InternalLinkage);
    // The remaining aliases are second names of internal functions and variables (mostly constructors).
    for (llvm::GlobalAlias& alias : llvm::make_early_inc_range(module.aliases())) {
        if (!alias.hasLocalLinkage()) continue;
        alias.replaceAllUsesWith(alias.getAliasee());
        alias.eraseFromParent();
    }
    // Protected: external code can find it, and code here calls it directly.
    for (const std::string& name : kept) {
        llvm::GlobalValue* value = module.getNamedValue(name);
        if (!value->hasExternalLinkage()) value->setLinkage(llvm::GlobalValue::ExternalLinkage);
        value->setVisibility(llvm::GlobalValue::ProtectedVisibility);
        value->setDSOLocal(true);
    }
    return exports;
}

void generalise_cpu(llvm::Module& module) {
    // Extensions that every CPU of the architecture has, so that naming them pins nothing.
    static constexpr llvm::StringLiteral common[] = {
        "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87", "fp-armv8", "neon", "outline-atomics", "v8a", "perfmon"};
    for (llvm::Function& function : module) {
        function.removeFnAttr("target-cpu");
        function.removeFnAttr("tune-cpu");
        // Functions through which nothing is thrown need no unwind table; the others keep theirs to be unwound.
        function.removeFnAttr(llvm::Attribute::UWTable);
        // -mretpoline-external-thunk: the thunks do not travel, and the code generator has its own.
        keep_cpu_features(function, [](llvm::StringRef feature) { return feature != "+retpoline-external-thunk"; });
        // `__attribute__((target("avx2")))` is intended, and its intrinsics need it.
        const bool meant = llvm::any_of(cpu_features(function), [](llvm::StringRef feature) {
            return feature.consume_front("+") && !llvm::is_contained(common, feature);
        });
        if (!meant) function.removeFnAttr("target-features");
    }
    set_flag(module, "PIC Level", 2);
    set_flag(module, "uwtable", 0);
}

void keep_unwindable(llvm::Module& module) {
    for (llvm::Function& function : module)
        if (!function.isDeclaration() && !function.hasPersonalityFn()) function.removeFnAttr(llvm::Attribute::NoUnwind);
}

void forget_norecurse(llvm::Module& module) {
    for (llvm::Function& function : module) function.removeFnAttr(llvm::Attribute::NoRecurse);
}

void free_statics(llvm::Module& module, const std::vector<std::string>& exports, std::size_t& statics) {
    const std::set<std::string> exported(exports.begin(), exports.end());
    for (llvm::GlobalVariable& variable : module.globals()) {
        if (!is_static(variable)) continue;
        if (!exported.contains(variable.getName().str()))
            variable.setName(std::string(wire::kStaticPrefix) + std::to_string(statics++));
        variable.setLinkage(llvm::GlobalValue::ExternalLinkage);
        variable.setVisibility(llvm::GlobalValue::DefaultVisibility);
        variable.setDSOLocal(false);
        // Both forms of the code compare and share its address.
        variable.setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::None);
    }
}

void use_library_statics(llvm::Module& module) {
    for (const std::string_view name : kLibraryStatics) {
        llvm::GlobalVariable* const variable = module.getNamedGlobal(llvm::StringRef(name.data(), name.size()));
        if (variable == nullptr || variable->isDeclaration()) continue;
        variable->setInitializer(nullptr);
        variable->setComdat(nullptr);
        variable->setLinkage(llvm::GlobalValue::ExternalLinkage);
    }
}

void reach_through_got(llvm::Module& module) {
    // The code generator calls this function at the end of a cleanup, by a declaration of its own unless one exists.
    const bool unwinds =
        std::any_of(module.begin(), module.end(), [](const llvm::Function& f) { return f.hasPersonalityFn(); });
    if (unwinds)
        module.getOrInsertFunction("_Unwind_Resume", llvm::Type::getVoidTy(module.getContext()),
                                   llvm::PointerType::getUnqual(module.getContext()));
    if (llvm::GlobalVariable* handle = module.getNamedGlobal("__dso_handle"))
        handle->setName(llvm::StringRef(wire::kDsoHandle));
    for (llvm::GlobalObject& object : module.global_objects()) {
        if (!object.isDeclaration()) continue;
        auto* function = llvm::dyn_cast<llvm::Function>(&object);
        if (function != nullptr && function->isIntrinsic()) continue;
        object.setVisibility(llvm::GlobalValue::DefaultVisibility);  // the handle of destructors is declared hidden
        object.setDSOLocal(false);
        if (function != nullptr) function->addFnAttr(llvm::Attribute::NonLazyBind);
    }
    set_flag(module, "RtLibUseGOT", 1);
    set_flag(module, "direct-access-external-data", 0);
}

std::string image_obstacle(const llvm::Module& module) {
    if (!module.getModuleInlineAsm().empty()) return "assembly outside of functions";
    return {};
}

}  // namespace rove::bitcode
