#include "extraction/modules.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/TypeFinder.h>

#include <cstring>
#include <utility>

#include "bitcode/allocation.hpp"
#include "bitcode/initial_values.hpp"
#include "bitcode/library_calls.hpp"
#include "bitcode/listed.hpp"

namespace rove::bitcode {
namespace {

// A program's section holds the bitcode of its object files one after the other, and LLVM's reader takes only one. A module is a magic
// number and blocks; each block states its size in words.
std::vector<Bytes> cut_apart(Bytes section) {
    constexpr std::uint32_t kMagic = 0xDEC04342;
    const auto word = [&section](std::size_t at) {
        std::uint32_t value = 0;
        if (at + sizeof value <= section.size()) std::memcpy(&value, section.data() + at, sizeof value);
        return value;
    };
    std::vector<Bytes> modules;
    std::size_t at = 0;
    while (at + 8 <= section.size()) {
        if (word(at) != kMagic) {
            at += 4;  // the linker's padding
            continue;
        }
        const std::size_t begin = at;
        at += 4;
        // ENTER_SUBBLOCK is 1 in two bits; the block's number and abbreviations' width fill the rest of the word.
        while (at + 8 <= section.size() && (word(at) & 3U) == 1) {
            const std::size_t bytes = std::size_t{word(at + 4)} * 4 + 8;
            if (bytes > section.size() - at) break;
            at += bytes;
        }
        modules.push_back(section.subspan(begin, at - begin));
    }
    return modules;
}

// With -O0 clang marks all functions that it can mark, and leaves out what only an optimiser needs: the lifetimes of local variables
// (llvm.lifetime), and the types of memory accesses (TBAA). Bitcode does not name the option.
bool compiled_unoptimised(const llvm::Module& module, std::string_view bitcode) {
    using llvm::Attribute;
    constexpr std::string_view kRootOfTypes = "C++ TBAA";  // also in C
    if (module.getFunction("llvm.lifetime.start.p0") != nullptr || bitcode.find(kRootOfTypes) != std::string_view::npos)
        return false;
    return llvm::all_of(module, [](const llvm::Function& function) {
        return function.isDeclaration() || function.hasFnAttribute(Attribute::NoInline) ||
               function.hasFnAttribute(Attribute::AlwaysInline) || function.hasFnAttribute(Attribute::Naked) ||
               function.hasFnAttribute(Attribute::MinSize);
    });
}

}  // namespace

Modules::Modules(std::string path, Bytes section, IsStrong is_strong)
    : path_(std::move(path)), bitcode_(cut_apart(section)), is_strong_(std::move(is_strong)) {
    set_up(context_, diagnostics_);
    // StripDebugInfo() adds it to the context with the first body that is read, and digests of bitcode contain all kinds of metadata that
    // the context knows (Definitions).
    (void)context_.getMDKindID("heapallocsite");
    modules_.resize(bitcode_.size());
    bodies_.resize(bitcode_.size());
    unoptimised_.resize(bitcode_.size());
}

Result<llvm::Module*> Modules::get(std::size_t index) {
    std::unique_ptr<llvm::Module>& module = modules_[index];
    if (module) return module.get();
    const std::string_view text = as_text(bitcode_[index]);
    auto read = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(llvm::StringRef(text.data(), text.size()), path_),
                                           context_, true);
    if (!read) return unreadable(read.takeError());
    // Debug information of types names functions, and would make them reachable. Bodies that are materialised later have none either.
    if (llvm::Error failed = (*read)->materializeMetadata()) return unreadable(std::move(failed));
    llvm::StripDebugInfo(**read);
    (*read)->setModuleIdentifier(std::to_string(index));
    unoptimised_[index] = compiled_unoptimised(**read, text);
    bodies_[index].clear();
    for (const llvm::Function& function : **read)
        if (!function.isDeclaration()) bodies_[index].push_back(&function);
    // The compiler's copies of inline functions of the C library, which the library also has. Whether a call by the optimiser used them would
    // depend on what else was read.
    for (llvm::Function& function : **read)
        if (function.hasAvailableExternallyLinkage() && is_of_library(function)) {
            function.setIsMaterializable(false);
            function.deleteBody();
        }
    define_initial_values(**read);  // SharedCode's optimiser reads constants before prepare() does
    leave_out_replaced(**read);
    module = std::move(*read);
    return module.get();
}

// The linker has used another definition: one of another module, which definition_of() finds, or one without bitcode, which does not
// travel.
void Modules::leave_out_replaced(llvm::Module& module) const {
    if (!is_strong_) return;
    for (llvm::GlobalObject& object : module.global_objects()) {
        if (object.isDeclaration() || !object.hasWeakAnyLinkage() || !is_strong_(object.getName())) continue;
        object.setComdat(nullptr);
        if (auto* const function = llvm::dyn_cast<llvm::Function>(&object)) {
            function->setIsMaterializable(false);
            function->deleteBody();
        } else if (auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(&object)) {
            variable->setInitializer(nullptr);
            variable->setLinkage(llvm::GlobalValue::ExternalLinkage);
        }
    }
}

void Modules::note_definitions(const llvm::Module& module, std::size_t index) {
    for (const llvm::GlobalValue& value : module.global_values()) {
        if (value.isDeclaration() || value.hasAvailableExternallyLinkage()) continue;
        if (value.hasLocalLinkage()) {  // LLVM treats a file's own function as the library's, too
            defines_of_library_ = defines_of_library_ || (llvm::isa<llvm::Function>(value) && is_of_library(value));
            continue;
        }
        defines_of_library_ = defines_of_library_ || (is_of_library(value) && !replaces_allocation(value, true));
        replaces_malloc_ = replaces_malloc_ || (value.getName() == "malloc" && replaces_allocation(value, false));
        const auto [known, added] = defined_in_.try_emplace(value.getName().str(), index);
        if (!added && value.isStrongDefinitionForLinker()) known->second = index;
    }
    for (const Listed& each : listed(module, kConstructors))
        if (each.variable != nullptr && !each.variable->hasLocalLinkage())
            made_at_.try_emplace(each.variable->getName().str(), MadeAt{index, each.place});
}

const Modules::MadeAt* Modules::made_at(const llvm::GlobalVariable& variable) const {
    const auto known = made_at_.find(variable.getName().str());
    return known != made_at_.end() ? &known->second : nullptr;
}

std::vector<Modules::Constructor> Modules::constructors_of(const llvm::GlobalVariable& variable) const {
    std::vector<Constructor> constructors;
    const MadeAt* const making = made_at(variable);
    if (variable.hasLocalLinkage() || making == nullptr) return constructors;
    for (const Listed& each : listed(*variable.getParent(), kConstructors))
        if (each.variable == &variable)
            constructors.push_back({.priority = each.priority, .making = *making, .function = each.function});
    return constructors;
}

bool Modules::is_made_by_priority(const llvm::GlobalVariable& variable) const {
    const llvm::StringRef name = variable.getName();
    const bool is_of_cxx_function = name.starts_with("_ZZ");
    if (made_at(variable) != nullptr || variable.hasLocalLinkage() || is_of_cxx_function || variable.isThreadLocal())
        return false;
    const std::string mangled = name.starts_with("_Z")
                                    ? name.substr(2).str()
                                    : std::to_string(name.size()) + name.str();  // a name in the global namespace
    // It has a guard, because several files may have it.
    return variable.getParent()->getNamedGlobal("_ZGV" + mangled) != nullptr;
}

bool Modules::is_static_of_function(const llvm::GlobalVariable& variable) {
    const llvm::StringRef name = variable.getName();
    // _ZGRZ: the temporary to which a static reference is bound.
    if (name.starts_with("_ZZ") || name.starts_with("_ZGVZ") || name.starts_with("_ZGRZ") || name.contains("E."))
        return true;
    const auto [function, rest] = name.split('.');
    return variable.hasLocalLinkage() && !rest.empty() && variable.getParent()->getFunction(function) != nullptr;
}

Result<const llvm::GlobalValue*> Modules::definition_of(const llvm::GlobalValue& met) {
    // Bodies for inlining only (of extern templates) are no definitions.
    const bool defined = !met.isDeclaration() && !met.hasAvailableExternallyLinkage();
    if (met.hasLocalLinkage() || (defined && !met.isInterposable())) return &met;
    ROVE_TRY(const llvm::GlobalValue* const there, definition_named(met.getName()));
    return there != nullptr ? there : &met;
}

Result<const llvm::GlobalValue*> Modules::called_for(const llvm::Instruction& instruction) {
    if (!defines_of_library_) return nullptr;
    const std::string name = library_call_of(instruction);
    llvm::LibFunc which{};
    if (name.empty() || !library_.getLibFunc(name, which)) return nullptr;
    ROVE_TRY(const llvm::GlobalValue* const own, definition_named(name));
    return own != nullptr && own->getValueType()->isFunctionTy() ? own : nullptr;
}

Result<const llvm::GlobalValue*> Modules::definition_named(llvm::StringRef name) {
    const auto known = defined_in_.find(name.str());
    if (known == defined_in_.end()) return nullptr;
    ROVE_TRY(const llvm::Module* const module, get(known->second));
    const llvm::GlobalValue* const there = module->getNamedValue(name);
    return there != nullptr && !there->isDeclaration() && !there->hasLocalLinkage() ? there : nullptr;
}

Status Modules::read_body(llvm::Function& function) const {
    if (llvm::Error failed = function.materialize()) return unreadable(std::move(failed));
    return {};
}

bool Modules::is_of_library(const llvm::GlobalValue& value) const {
    llvm::LibFunc which{};
    return library_.getLibFunc(value.getName(), which);
}

std::string Modules::name_in_program(const llvm::GlobalVariable& variable) {
    std::string name = variable.getName().str();
    if (variable.hasLocalLinkage()) name += "@" + variable.getParent()->getModuleIdentifier();
    return name;
}

tl::unexpected<Error> Modules::unreadable(llvm::Error why) const {
    return fail(ErrorCode::invalid, "{}: its bitcode cannot be read: {} {}", path_, llvm::toString(std::move(why)),
                diagnostics_);
}

void leave_out_names_of_types(const llvm::Module& module) {
    llvm::TypeFinder types;
    types.run(module, /*onlyNamed=*/true);
    for (llvm::StructType* each : types) each->setName("");
}

}  // namespace rove::bitcode
