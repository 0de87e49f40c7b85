// The code that a program runs itself, and the part of it that makes a static.
//
// Threads: one at a time, as for Modules. Both only read the program, whose bodies of functions OwnCode::read() loads.
//
// Invariant: an OwnCode is empty before read(), and constant after it.
#pragma once

#include <llvm/IR/Dominators.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.hpp"
#include "bitcode/listed.hpp"
#include "extraction/modules.hpp"

namespace rove::bitcode {

// The code that a program may run itself.
class OwnCode {
public:
    // statics: those that travel, and are initialised on the node.
    OwnCode(Modules& program, const std::set<std::string>& statics,
            const std::function<bool(const llvm::Function&)>& is_sent)
        : program_(program), statics_(statics), is_sent_(is_sent) {}

    [[nodiscard]] Status read();

    // All declarations that refer to this definition, and the definition.
    [[nodiscard]] const std::vector<const llvm::GlobalValue*>& met_as(const llvm::GlobalValue& definition) const {
        const auto found = used_as_.find(&definition);
        return found != used_as_.end() ? found->second : none_;
    }
    [[nodiscard]] const std::unordered_map<const llvm::GlobalValue*, const llvm::GlobalValue*>& definitions() const {
        return definitions_;
    }
    [[nodiscard]] const llvm::Function* definition_of(const llvm::Function& function) const {
        const auto found = definitions_.find(&function);
        return found != definitions_.end() ? llvm::dyn_cast<llvm::Function>(found->second) : nullptr;
    }
    [[nodiscard]] bool has(const llvm::GlobalValue& value) const { return read_.contains(&value); }

private:
    Status read(const llvm::GlobalValue& definition);
    // Initialisers of statics that travel run on the node as well: they are no change.
    void meet_others(const std::vector<Listed>& list);
    void meet_operands(const llvm::User& user);
    void meet(const llvm::Constant& constant);

    Modules& program_;
    const std::set<std::string>& statics_;
    const std::function<bool(const llvm::Function&)>& is_sent_;
    std::unordered_set<const llvm::Constant*> met_;
    std::vector<const llvm::GlobalValue*> unread_;
    std::unordered_map<const llvm::GlobalValue*, const llvm::GlobalValue*> definitions_;
    std::unordered_map<const llvm::GlobalValue*, std::vector<const llvm::GlobalValue*>> used_as_;
    const std::vector<const llvm::GlobalValue*> none_;
    std::unordered_set<const llvm::GlobalValue*> read_;  // definitions
};

// The code that initialises a static: in a function's static when the function is first called, in others in a constructor of their own.
class Making {
public:
    explicit Making(const llvm::GlobalVariable& variable);
    [[nodiscard]] bool has(const llvm::Instruction& instruction);

private:
    const llvm::Value* constructor_ = nullptr;
    std::vector<const llvm::BasicBlock*> begins_;
    std::unordered_map<const llvm::Function*, std::optional<llvm::DominatorTree>> trees_;
};

}  // namespace rove::bitcode
