// The modules of a program, from the bitcode that its file contains.
#pragma once

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "bitcode/read_module.hpp"
#include "extraction/simplify.hpp"

namespace rove::bitcode {

// All modules are in one LLVM context. The bodies of functions are read when they are needed. A module that was read is kept until drop(),
// because reading the head of a module takes longer than everything else.
//
// Threads: one at a time; several threads each make their own. Invariant: the index of a module is its place in the section, and pointers to its
// values are valid until drop() of that index.
class Modules {
public:
    using IsStrong = std::function<bool(std::string_view name)>;
    // section: the program's; outlives this. is_strong: as in ExtractRequest; called by several threads at the same time.
    Modules(std::string path, Bytes section, IsStrong is_strong);
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::size_t count() const { return modules_.size(); }
    [[nodiscard]] llvm::LLVMContext& context() { return context_; }

    [[nodiscard]] Bytes bitcode(std::size_t index) const { return bitcode_[index]; }
    // invalid: it is no bitcode.
    [[nodiscard]] Result<llvm::Module*> get(std::size_t index);
    // Its functions that have a body in the bitcode, in its order. Precondition: get() has read it.
    [[nodiscard]] const std::vector<const llvm::Function*>& bodies(std::size_t index) const { return bodies_[index]; }
    // Notes what a module defines. To be called for each of them before definition_of().
    void note_definitions(const llvm::Module& module, std::size_t index);
    // Whether it was compiled with -O0. Then the compiler has marked functions `optnone`, and not their author. Precondition: as for
    // bodies().
    [[nodiscard]] bool is_unoptimised(const llvm::Module& module) const { return unoptimised_[index_of(module)]; }
    // Whether a module defines a malloc() that replaces the C library's (allocation.hpp).
    [[nodiscard]] bool replaces_malloc() const { return replaces_malloc_; }
    // Whether a module defines a function that LLVM treats as the C library's and may call by itself, without those that allocate: they never
    // travel.
    [[nodiscard]] bool defines_of_library() const { return defines_of_library_; }
    // Whether LLVM knows a function of that name in the C library.
    [[nodiscard]] bool is_of_library(const llvm::GlobalValue& value) const;
    // Whether the program has a definition for that declaration, but no bitcode of it.
    [[nodiscard]] bool is_without_bitcode(const llvm::GlobalValue& value) const {
        return value.isDeclaration() && is_strong_ && is_strong_(value.getName());
    }
    // The definition in its own module, or in the module that defines it for the whole program; `met` itself if no module does.
    [[nodiscard]] Result<const llvm::GlobalValue*> definition_of(const llvm::GlobalValue& met);
    // The program's own definition of a function of the C library which the code generator may call for an instruction (library_calls.hpp).
    // Null: it has none.
    [[nodiscard]] Result<const llvm::GlobalValue*> called_for(const llvm::Instruction& instruction);
    // When the program initialises an inline variable (or a template's static member) that code initialises: with the first file that has it, in
    // the order of linking, and within that file in the order of definition. Null: nothing is noted about it.
    struct MadeAt {
        std::size_t module, place;
        friend auto operator<=>(const MadeAt&, const MadeAt&) = default;
    };
    [[nodiscard]] const MadeAt* made_at(const llvm::GlobalVariable& variable) const;
    // The constructor that initialises such a variable: the compiler writes one for each, unless the variable has a priority.
    struct Constructor {
        std::uint64_t priority;
        MadeAt making;
        llvm::Constant* function;
    };
    [[nodiscard]] std::vector<Constructor> constructors_of(const llvm::GlobalVariable& variable) const;
    // Whether such a variable has a priority: then one function of its file initialises it together with all others of that priority.
    [[nodiscard]] bool is_made_by_priority(const llvm::GlobalVariable& variable) const;
    // Recognised by its name: _ZZ1fvE1n in C++, and f.n in C, where no other name has a dot.
    [[nodiscard]] static bool is_static_of_function(const llvm::GlobalVariable& variable);
    // A constant that has no name outside its module and may be merged with equal ones: most often a string.
    [[nodiscard]] static bool is_string(const llvm::GlobalVariable& variable) {
        return variable.hasPrivateLinkage() && variable.isConstant() && variable.hasGlobalUnnamedAddr() &&
               variable.hasInitializer();
    }
    // Reads a function's body, if that has not been done.
    [[nodiscard]] Status read_body(llvm::Function& function) const;
    void simplify(llvm::Function& function) { simplifier_.simplify(function); }
    // A name that no other variable of the program has: the variable's own, with the file if only one file knows it.
    [[nodiscard]] static std::string name_in_program(const llvm::GlobalVariable& variable);
    // The module's index, as get() takes it.
    [[nodiscard]] static std::size_t index_of(const llvm::Module& module) {
        return std::stoul(module.getModuleIdentifier());
    }
    // To be called when it is probably not needed any more; get() reads it again.
    void drop(std::size_t index) { modules_[index].reset(); }

private:
    // The definition of that name for other modules. Null: no module has one.
    [[nodiscard]] Result<const llvm::GlobalValue*> definition_named(llvm::StringRef name);
    [[nodiscard]] tl::unexpected<Error> unreadable(llvm::Error why) const;
    void leave_out_replaced(llvm::Module& module) const;

    const std::string path_;
    const std::vector<Bytes> bitcode_;
    const IsStrong is_strong_;
    const llvm::TargetLibraryInfoImpl library_;  // the names of the C library's functions
    std::string diagnostics_;
    llvm::LLVMContext context_;
    std::vector<std::unique_ptr<llvm::Module>> modules_;  // destroyed before their context
    std::vector<std::vector<const llvm::Function*>> bodies_;
    std::vector<bool> unoptimised_;
    std::unordered_map<std::string, std::size_t> defined_in_;  // by name: the modules that define names for others
    bool replaces_malloc_ = false;
    bool defines_of_library_ = false;
    std::unordered_map<std::string, MadeAt> made_at_;  // by the variable's name
    FunctionSimplifier simplifier_;
};

// The context numbers types of one name, which several modules have, in the order in which they are read. The written bitcode must not
// depend on that. Removes the names everywhere: nothing else needs them.
void leave_out_names_of_types(const llvm::Module& module);

}  // namespace rove::bitcode
