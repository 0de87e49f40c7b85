#include "bitcode/runnable.hpp"

#include <dlfcn.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalIFunc.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <algorithm>

#include "wire/image.hpp"

namespace rove::bitcode {
namespace {

std::string shown(const llvm::GlobalValue& value) {
    return llvm::demangle(value.getName().str());
}

// The function that compares a value with an address within the variable; null: none does.
const llvm::Function* compared_in(const llvm::Constant& variable) {
    for (const llvm::User* user : variable.users()) {
        const auto* const compares = llvm::dyn_cast<llvm::ICmpInst>(user);
        const bool is_assumed = compares != nullptr && llvm::all_of(compares->users(), [](const llvm::User* each) {
                                    return llvm::isa<llvm::AssumeInst>(
                                        // The address in an object that has just been made (-fstrict-vtable-pointers).
                                        each);
                                });
        if (compares != nullptr && !is_assumed) return compares->getFunction();
        const auto* const part = llvm::dyn_cast<llvm::ConstantExpr>(user);
        if (const llvm::Function* found = part != nullptr ? compared_in(*part) : nullptr) return found;
    }
    return nullptr;
}

// A dynamic_cast to a final class compares vtables if the compiler may assume that each class has one in the whole program.
Status check_vtables(const llvm::Module& module) {
    for (const llvm::GlobalVariable& variable : module.globals()) {
        const llvm::Function* const compares = variable.getName().starts_with("_ZTV") ? compared_in(variable) : nullptr;
        if (compares == nullptr) continue;
        return fail(
            ErrorCode::unsupported,
            "{} knows an object's class by the address of its vtable (a dynamic_cast to a class that is final), and "
            "code that travels has vtables of its own; compile it with -fno-assume-unique-vtables, as "
            "rove_add_executable() and rove_embed() do",
            shown(*compares));
    }
    return {};
}

}  // namespace

Status check_runnable(const llvm::Module& module) {
    ROVE_CHECK(check_vtables(module));
    for (const llvm::GlobalObject& object : module.global_objects()) {
        const llvm::StringRef name = object.getName();
        if (object.getAlign().valueOrOne().value() > wire::kAlignmentMax)
            return fail(ErrorCode::unsupported,
                        "{} is aligned to {} bytes, and what travels to {} at most; allocate it when it runs",
                        shown(object), object.getAlign()->value(), wire::kAlignmentMax);
        if (object.isDeclaration() && !object.use_empty() &&
            (name.starts_with("__start_") || name.starts_with("__stop_")))
            return fail(ErrorCode::unsupported,
                        "{} is the bound of a section, which only a program's linker knows; put what is in the section "
                        "into an array",
                        name.str());
    }
    static constexpr llvm::StringLiteral kBounds[] = {"end",
                                                      "_end",
                                                      "edata",
                                                      "_edata",
                                                      "etext",
                                                      "_etext",
                                                      "__etext",
                                                      "__data_start",
                                                      "__bss_start",
                                                      "__executable_start",
                                                      "__ehdr_start",
                                                      "_DYNAMIC",
                                                      "_GLOBAL_OFFSET_TABLE_",
                                                      "__preinit_array_start",
                                                      "__preinit_array_end",
                                                      "__init_array_start",
                                                      "__init_array_end",
                                                      "__fini_array_start",
                                                      "__fini_array_end"};
    for (const llvm::StringLiteral name : kBounds) {
        const llvm::GlobalValue* const bound = module.getNamedValue(name);
        if (bound == nullptr || !bound->isDeclaration() || bound->use_empty()) continue;
        // Names without an underscore are the program's, too: a function called end may be an interface's.
        if (llvm::isa<llvm::Function>(bound) && !name.starts_with("_")) continue;
        return fail(ErrorCode::unsupported,
                    "{} is a bound of a program's own memory, which only its linker knows; a package has none",
                    name.str());
    }
    for (const llvm::GlobalIFunc& function : module.ifuncs())
        return fail(ErrorCode::unsupported,
                    "{} is chosen by the CPU when a program is loaded (ifunc, target_clones), and packages are not "
                    "loaded so; write it once: a node compiles it for its own CPU",
                    shown(function));
    return {};
}

Status check_sections(const llvm::Module& module) {
    static constexpr llvm::StringLiteral kRead[] = {".preinit_array", ".init_array", ".fini_array", ".ctors",
                                                    ".dtors"};  // also .init_array.100
    static constexpr llvm::StringLiteral kRun[] = {".init", ".fini"};
    for (const llvm::GlobalObject& object : module.global_objects()) {
        const llvm::StringRef own = object.getSection();
        const bool is_read = llvm::any_of(kRead, [own](llvm::StringRef section) {
            return own == section || (own.starts_with(section) && own[section.size()] == '.');
        });
        if (is_read || llvm::is_contained(kRun, own))
            return fail(ErrorCode::unsupported,
                        "{} is in the section {}, which is run when a program is loaded, and packages are not "
                        "loaded so; mark a function as __attribute__((constructor)) or destructor",
                        shown(object), own.str());
    }
    return {};
}

std::set<std::string> defined_names(const llvm::Module& module) {
    std::set<std::string> names;
    for (const llvm::GlobalValue& value : module.global_values())
        if (!value.isDeclarationForLinker()) names.insert(value.getName().str());
    return names;
}

std::set<std::string> words_of_assembly(const llvm::Module& module) {
    std::set<std::string> words;
    const auto add = [&words](llvm::StringRef text) {
        const auto in_name = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; };
        while (!(text = text.drop_until(in_name)).empty()) {
            words.insert(text.take_while(in_name).str());
            text = text.drop_while(in_name);
        }
    };
    add(module.getModuleInlineAsm());
    for (const llvm::Function& function : module)
        for (const llvm::Instruction& each : llvm::instructions(function))
            if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&each); call != nullptr && call->isInlineAsm())
                add(llvm::cast<llvm::InlineAsm>(call->getCalledOperand())->getAsmString());
    return words;
}

Status check_imports(const std::vector<std::string>& imports, const std::set<std::string>& defined,
                     const std::vector<std::string>& declared, const std::set<std::string>& words) {
    const auto named = std::find_if(imports.begin(), imports.end(), [&](const std::string& name) {
        return words.contains(name) && std::find(declared.begin(), declared.end(), name) == declared.end() &&
               (defined.contains(name) || dlsym(RTLD_DEFAULT, name.c_str()) == nullptr);
    });
    if (named == imports.end()) return {};
    return fail(ErrorCode::unsupported, "assembly names {}, which {}; give it to the assembly as an operand",
                llvm::demangle(*named),
                defined.contains(*named) ? "has another name in a package" : "no other code here names");
}

Status check_sanitizers(const std::vector<std::string>& declared) {
    static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> runtimes[] = {
        {"__ubsan_", "undefined"}, {"__asan_", "address"}, {"__tsan_", "thread"}, {"__msan_", "memory"}};
    for (const std::string& name : declared)
        for (const auto& [prefix, option] : runtimes)
            if (llvm::StringRef(name).starts_with(prefix))
                return fail(ErrorCode::unsupported,
                            "it calls {}, which only a program built with -fsanitize={} has; compile what travels "
                            "without that option",
                            name, option.str());
    return {};
}

}  // namespace rove::bitcode
