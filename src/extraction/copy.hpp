// Copies a function, and all that it reaches, into a module of its own.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.hpp"
#include "extraction/modules.hpp"

namespace rove::bitcode {

// Copies from one program. Threads: one at a time.
//
// Invariants: what is reached several times is copied once (`twins_`). When take() has returned a function, all that it reaches has been copied,
// with its body or its value. The program is unchanged, except that bodies are read and simplified.
class Copy final : llvm::ValueMaterializer {
public:
    // Both outlive this.
    Copy(Modules& from, llvm::Module& into) : from_(from), into_(into) {}

    // To be called before take(): replaces the function by a stub that fails the call with `why`.
    void leave(const llvm::Function& function, std::string why) { left_[&function] = std::move(why); }

    // To be called before take(): the program's own memcpy() and the like are not copied for the calls that the compiler makes of them.
    void leave_memory_functions() { leaves_memory_functions_ = true; }

    // Returns the copy. invalid: the program's bitcode is malformed.
    [[nodiscard]] Result<llvm::Function*> take(llvm::Function& function);

    // The statics that were reached (Modules::name_in_program).
    [[nodiscard]] std::vector<std::string> statics() const;
    // Whether a variable in the copy is a static of a function.
    [[nodiscard]] bool is_of_function(const llvm::GlobalVariable& variable) const {
        return of_functions_.contains(&variable);
    }
    // Null: it was not reached.
    [[nodiscard]] llvm::Function* copy_of(const llvm::Function& function) const;
    // To be called when all has been taken: writes the list of constructors that initialise the copied variables, in the program's order.
    void list_constructors();
    // An inline variable that was reached and that the program initialises by its init_priority; empty: none. Its bitcode does not show which
    // code initialises it: the constructors of one priority are one function for a whole file.
    [[nodiscard]] const std::string& made_by_priority() const { return made_by_priority_; }
    // Whether leave_memory_functions() would have made a difference.
    [[nodiscard]] bool has_memory_functions() const { return has_memory_functions_; }
    // Allocation functions that were not copied (allocation.hpp).
    [[nodiscard]] std::vector<std::string>& replaced() { return replaced_; }

private:
    llvm::Value* materialize(llvm::Value* value) override;
    llvm::GlobalValue* declare(const llvm::GlobalValue& source);
    llvm::Function* declare_left(const llvm::Function& source, const std::string& why);
    void copy_body(llvm::Function& source);
    // Copies what only the code generator calls in this function.
    void copy_called(const llvm::Function& source);
    void copy_value(const llvm::GlobalValue& source);
    void copy_constructor(const llvm::GlobalVariable& variable);
    llvm::Constant* mapped(const llvm::Constant& constant) {
        return llvm::MapValue(&constant, map_, llvm::RF_None, nullptr, this);
    }

    Modules& from_;
    llvm::Module& into_;
    llvm::ValueToValueMapTy map_;
    std::unordered_map<const llvm::GlobalValue*, llvm::GlobalValue*> twins_;
    std::unordered_set<const llvm::GlobalVariable*> of_functions_;  // variables in the copy
    std::deque<llvm::Function*> bodies_;                            // bodies to be copied
    std::deque<const llvm::GlobalValue*> values_;                   // variables and aliases to be given their values
    std::unordered_map<const llvm::Function*, std::string> left_;
    struct Constructor {
        std::uint64_t priority;
        Modules::MadeAt making;
        llvm::Function* taken;
    };
    std::vector<Constructor> constructors_;
    std::string made_by_priority_;
    std::vector<std::string> replaced_;
    bool leaves_memory_functions_ = false, has_memory_functions_ = false;
    std::optional<Error> failed_;
};

}  // namespace rove::bitcode
