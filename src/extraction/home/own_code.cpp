#include "extraction/home/own_code.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace rove::bitcode {

Status OwnCode::read() {
    bool has_main = false;
    for (std::size_t i = 0; i < program_.count(); ++i) {
        ROVE_TRY(const llvm::Module* const module, program_.get(i));
        const llvm::Function* main = module->getFunction("main");
        has_main = has_main || (main != nullptr && !main->isDeclaration());
    }
    for (std::size_t i = 0; i < program_.count(); ++i) {
        ROVE_TRY(const llvm::Module* const module, program_.get(i));
        for (const llvm::StringRef list : {kConstructors, kDestructors}) meet_others(listed(*module, list));
        for (const llvm::Function& function : *module)
            if (has_main ? function.getName() == "main" : function.hasExternalLinkage()) meet(function);
    }
    while (!unread_.empty()) {
        const llvm::GlobalValue* next = unread_.back();
        unread_.pop_back();
        ROVE_TRY(const llvm::GlobalValue* const definition, program_.definition_of(*next));
        used_as_[definition].push_back(next);
        definitions_[next] = definition;
        if (read_.insert(definition).second) ROVE_CHECK(read(*definition));
    }
    return {};
}

Status OwnCode::read(const llvm::GlobalValue& definition) {
    if (const auto* function = llvm::dyn_cast<llvm::Function>(&definition)) {
        if (function->isDeclaration() || is_sent_(*function)) return {};
        ROVE_CHECK(program_.read_body(const_cast<llvm::Function&>(*function)));
        for (const llvm::Instruction& instruction : llvm::instructions(*function)) meet_operands(instruction);
        return {};
    }
    meet_operands(definition);  // a variable's value, an alias's function
    return {};
}

void OwnCode::meet_others(const std::vector<Listed>& list) {
    for (const Listed& each : list) {
        if (each.variable != nullptr && statics_.contains(Modules::name_in_program(*each.variable))) continue;
        meet(*each.function);
        if (each.variable != nullptr) meet(*each.variable);
    }
}

void OwnCode::meet_operands(const llvm::User& user) {
    for (const llvm::Use& operand : user.operands())
        if (const auto* constant = llvm::dyn_cast<llvm::Constant>(operand.get())) meet(*constant);
}

void OwnCode::meet(const llvm::Constant& constant) {
    if (llvm::isa<llvm::ConstantData>(constant) || !met_.insert(&constant).second) return;
    if (const auto* value = llvm::dyn_cast<llvm::GlobalValue>(&constant))
        unread_.push_back(value);
    else
        meet_operands(constant);
}

Making::Making(const llvm::GlobalVariable& variable) {
    for (const Listed& each : listed(*variable.getParent(), kConstructors))
        if (each.variable == &variable) constructor_ = each.function;
    const llvm::GlobalVariable* guard =
        variable.getParent()->getNamedGlobal(("_ZGV" + variable.getName().substr(2)).str());
    if (guard == nullptr) return;
    for (const llvm::User* user : guard->users()) {
        const auto* call = llvm::dyn_cast<llvm::CallBase>(user);
        if (call == nullptr || call->getCalledFunction() == nullptr ||
            call->getCalledFunction()->getName() != "__cxa_guard_acquire")
            continue;
        for (const llvm::BasicBlock* next : llvm::successors(call->getParent()))
            if (next->getSinglePredecessor() == call->getParent()) begins_.push_back(next);
    }
}

bool Making::has(const llvm::Instruction& instruction) {
    const llvm::Function* function = instruction.getFunction();
    if (function == constructor_) return true;
    for (const llvm::BasicBlock* begin : begins_) {
        if (begin->getParent() != function) continue;
        std::optional<llvm::DominatorTree>& tree = trees_[function];
        if (!tree) tree.emplace(const_cast<llvm::Function&>(*function));
        if (tree->dominates(begin, instruction.getParent())) return true;
    }
    return false;
}

}  // namespace rove::bitcode
