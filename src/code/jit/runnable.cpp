#include "code/jit/runnable.hpp"

#include <dlfcn.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/GlobalIFunc.h>
#include <llvm/IR/Module.h>

#include <algorithm>

namespace rove::code::jit {
namespace {

// A page: how code and data are aligned where they are loaded.
constexpr std::uint64_t kAlignmentMax = 4096;

std::string shown(const llvm::GlobalValue& value) {
    return llvm::demangle(value.getName().str());
}

}  // namespace

Status check_runnable(const llvm::Module& module) {
    for (const llvm::GlobalObject& object : module.global_objects()) {
        const llvm::StringRef name = object.getName();
        if (object.getAlign().valueOrOne().value() > kAlignmentMax)
            return fail(ErrorCode::unsupported,
                        "{} is aligned to {} bytes, and what travels to {} at most; allocate it when it runs",
                        shown(object), object.getAlign()->value(), kAlignmentMax);
        if (object.isDeclaration() && !object.use_empty() &&
            (name.starts_with("__start_") || name.starts_with("__stop_")))
            return fail(ErrorCode::unsupported,
                        "{} is the bound of a section, which only a program's linker knows; put what is in the section "
                        "into an array",
                        name.str());
    }
    for (const llvm::GlobalIFunc& function : module.ifuncs())
        return fail(ErrorCode::unsupported,
                    "{} is chosen by the CPU when a program is loaded (ifunc, target_clones), and packages are not "
                    "loaded so; write it once: a node compiles it for its own CPU",
                    shown(function));
    return {};
}

std::set<std::string> defined_names(const llvm::Module& module) {
    std::set<std::string> names;
    for (const llvm::GlobalValue& value : module.global_values())
        if (!value.isDeclarationForLinker()) names.insert(value.getName().str());
    return names;
}

Status check_imports(const std::vector<std::string>& imports, const std::set<std::string>& defined) {
    // One that the C library has, too, is what the code generator calls by itself: memcpy in a package with a memcpy of its own.
    const auto named = std::find_if(imports.begin(), imports.end(), [&](const std::string& name) {
        return defined.contains(name) && dlsym(RTLD_DEFAULT, name.c_str()) == nullptr;
    });
    if (named == imports.end()) return {};
    return fail(ErrorCode::unsupported,
                "assembly names {}, which has another name in a package; give it to the assembly as an operand",
                llvm::demangle(*named));
}

}  // namespace rove::code::jit
