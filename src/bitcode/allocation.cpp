#include "bitcode/allocation.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DerivedTypes.h>

namespace rove::bitcode {

namespace {

bool is_of_c(llvm::StringRef name) {
    static constexpr llvm::StringLiteral names[] = {
        "malloc",         "free",   "calloc",  "realloc", "aligned_alloc",     "memalign",
        "posix_memalign", "valloc", "pvalloc", "cfree",   "malloc_usable_size"};
    return llvm::is_contained(names, name);
}

// What allocates by malloc(): an allocator that replaces it brings these, too.
bool is_beside_malloc(llvm::StringRef name) {
    static constexpr llvm::StringLiteral names[] = {"strdup", "strndup", "wcsdup", "reallocarray"};
    return llvm::is_contained(names, name);
}

bool is_of_cpp(llvm::StringRef name) {
    const bool allocates = name.consume_front("_Znwm") || name.consume_front("_Znam");
    if (!allocates && !name.consume_front("_ZdlPv") && !name.consume_front("_ZdaPv")) return false;
    static constexpr llvm::StringLiteral forms[] = {"", "RKSt9nothrow_t", "St11align_val_t",
                                                    "St11align_val_tRKSt9nothrow_t"};
    static constexpr llvm::StringLiteral with_size[] = {"m", "mSt11align_val_t"};
    return llvm::is_contained(forms, name) || (!allocates && llvm::is_contained(with_size, name));
}

}  // namespace

bool replaces_allocation(const llvm::GlobalValue& value, bool with_malloc) {
    return !value.isDeclaration() && !value.hasLocalLinkage() &&
           (is_of_cpp(value.getName()) || is_of_c(value.getName()) ||
            (with_malloc && is_beside_malloc(value.getName())));
}

llvm::Function* declare_allocation(const llvm::GlobalValue& replaced, llvm::Module& into) {
    auto* declared = llvm::Function::Create(llvm::cast<llvm::FunctionType>(replaced.getValueType()),
                                            llvm::GlobalValue::ExternalLinkage, "", into);
    declared->setName(replaced.getName());
    declared->addFnAttr(llvm::Attribute::NoBuiltin);  // as the compiler declares it: explicit calls are not left out
    return declared;
}

std::vector<std::string> leave_out_allocation(llvm::Module& module) {
    const llvm::GlobalValue* const malloc = module.getNamedValue("malloc");
    const bool with_malloc = malloc != nullptr && replaces_allocation(*malloc, false);
    std::vector<llvm::GlobalValue*> replaced;  // a form may be another one's second name
    for (llvm::GlobalValue& value : module.global_values())
        if (replaces_allocation(value, with_malloc)) replaced.push_back(&value);
    std::vector<std::string> names;
    for (llvm::GlobalValue* value : replaced) {
        names.push_back(llvm::demangle(value->getName().str()));
        llvm::Function* declared = declare_allocation(*value, module);
        value->replaceAllUsesWith(declared);
        declared->takeName(value);
    }
    for (llvm::GlobalValue* value : replaced) value->eraseFromParent();
    return names;
}

}  // namespace rove::bitcode
