#include "bitcode/allocation.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/Support/raw_ostream.h>

namespace rove::bitcode {

namespace {

// Whatever their types: they access one another's memory, so a program that replaces one replaces all that it has.
bool is_core(llvm::StringRef name) {
    static constexpr llvm::StringLiteral names[] = {"malloc", "free", "calloc", "realloc"};
    return llvm::is_contained(names, name);
}

// The other names may mean other things if the program does not replace malloc(): it may have a function of another type that is called
// valloc.
bool is_beside_core(const llvm::GlobalValue& value, bool with_malloc) {
    struct Allocating {
        llvm::StringLiteral name, type;
    };
    static constexpr Allocating functions[] = {
        {"aligned_alloc", "ptr (i64, i64)"},
        {"memalign", "ptr (i64, i64)"},
        {"posix_memalign", "i32 (ptr, i64, i64)"},
        {"valloc", "ptr (i64)"},
        {"pvalloc", "ptr (i64)"},
        {"malloc_usable_size", "i64 (ptr)"},
    };
    // Functions that allocate by malloc(): an allocator that replaces malloc() defines these, too. cfree() is the old name of free().
    static constexpr llvm::StringLiteral with[] = {"strdup", "strndup", "wcsdup", "reallocarray", "cfree"};
    if (with_malloc && llvm::is_contained(with, value.getName())) return true;
    return llvm::any_of(functions, [&](const Allocating& each) {
        if (value.getName() != each.name) return false;
        std::string type;
        llvm::raw_string_ostream(type) << *value.getValueType();
        return with_malloc || type == each.type;
    });
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
    return !value.isDeclaration() && !value.hasLocalLinkage() && llvm::isa<llvm::FunctionType>(value.getValueType()) &&
           (is_of_cpp(value.getName()) || is_core(value.getName()) || is_beside_core(value, with_malloc));
}

llvm::Function* declare_allocation(const llvm::GlobalValue& replaced, llvm::Module& into) {
    auto* declared = llvm::Function::Create(llvm::cast<llvm::FunctionType>(replaced.getValueType()),
                                            llvm::GlobalValue::ExternalLinkage, "", into);
    declared->setName(replaced.getName());
    declared->addFnAttr(llvm::Attribute::NoBuiltin);  // as the compiler declares it: explicit calls are not removed
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
