#include "code/jit/at_home.hpp"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BuildLibCalls.h>

#include <cstdlib>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace rove::code::jit {
namespace {

// What a program may run by itself.
class OwnCode {
public:
    // statics: those that travel, and are made where they arrive.
    OwnCode(Modules& program, const std::set<std::string>& statics,
            const std::function<bool(const llvm::Function&)>& is_sent)
        : program_(program), statics_(statics), is_sent_(is_sent) {}

    Status read() {
        bool has_main = false;
        for (std::size_t i = 0; i < program_.count(); ++i) {
            ROVE_TRY(const llvm::Module* const module, program_.get(i));
            const llvm::Function* main = module->getFunction("main");
            has_main = has_main || (main != nullptr && !main->isDeclaration());
        }
        for (std::size_t i = 0; i < program_.count(); ++i) {
            ROVE_TRY(const llvm::Module* const module, program_.get(i));
            for (const char* list : {"llvm.global_ctors", "llvm.global_dtors"})
                if (const llvm::GlobalVariable* all = module->getNamedGlobal(list)) meet_others(*all);
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

    // Under each name that it has in the modules.
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
    Status read(const llvm::GlobalValue& definition) {
        if (const auto* function = llvm::dyn_cast<llvm::Function>(&definition)) {
            if (function->isDeclaration() || is_sent_(*function)) return {};
            ROVE_CHECK(program_.read_body(const_cast<llvm::Function&>(*function)));
            for (const llvm::Instruction& instruction : llvm::instructions(*function)) meet_operands(instruction);
            return {};
        }
        meet_operands(definition);  // a variable's value, an alias's function
        return {};
    }
    // Initialisers of statics that travel run on the node as well: they are no change.
    void meet_others(const llvm::GlobalVariable& list) {
        if (!list.hasInitializer()) return;
        for (const llvm::Use& element : list.getInitializer()->operands()) {
            const auto* entry = llvm::dyn_cast<llvm::ConstantStruct>(element.get());
            const auto* variable = entry != nullptr && entry->getNumOperands() == 3
                                       ? llvm::dyn_cast<llvm::GlobalVariable>(entry->getOperand(2)->stripPointerCasts())
                                       : nullptr;
            if (entry != nullptr && (variable == nullptr || !statics_.contains(Modules::name_in_program(*variable))))
                meet_operands(*entry);
        }
    }
    void meet_operands(const llvm::User& user) {
        for (const llvm::Use& operand : user.operands())
            if (const auto* constant = llvm::dyn_cast<llvm::Constant>(operand.get())) meet(*constant);
    }
    void meet(const llvm::Constant& constant) {
        if (llvm::isa<llvm::ConstantData>(constant) || !met_.insert(&constant).second) return;
        if (const auto* value = llvm::dyn_cast<llvm::GlobalValue>(&constant))
            unread_.push_back(value);
        else
            meet_operands(constant);
    }

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

// The code that makes a static: of a function when that is first called, of others in a constructor of their own.
class Making {
public:
    explicit Making(const llvm::GlobalVariable& variable) {
        const llvm::GlobalVariable* constructors = variable.getParent()->getNamedGlobal("llvm.global_ctors");
        if (constructors != nullptr && constructors->hasInitializer())
            for (const llvm::Use& each : constructors->getInitializer()->operands())
                if (const auto* entry = llvm::dyn_cast<llvm::ConstantStruct>(each.get());
                    entry != nullptr && entry->getNumOperands() == 3 &&
                    entry->getOperand(2)->stripPointerCasts() == &variable)
                    constructor_ = entry->getOperand(1)->stripPointerCasts();
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
    [[nodiscard]] bool has(const llvm::Instruction& instruction) {
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

private:
    const llvm::Value* constructor_ = nullptr;
    std::vector<const llvm::BasicBlock*> begins_;
    std::unordered_map<const llvm::Function*, std::optional<llvm::DominatorTree>> trees_;
};

// Of a function with a C name. LLVM knows those of C's library.
bool reads_only(const llvm::Function& function, const llvm::CallBase& call, unsigned argument) {
    if (function.isVarArg() && argument >= function.arg_size()) return !function.getName().contains("scanf");
    const llvm::TargetLibraryInfoImpl libraries(llvm::Triple(function.getParent()->getTargetTriple()));
    if (function.isDeclaration())
        (void)llvm::inferNonMandatoryLibFuncAttrs(const_cast<llvm::Function&>(function),
                                                  llvm::TargetLibraryInfo(libraries));
    return call.onlyReadsMemory(argument);
}

// Whether a parameter's type says that the function does not change what it points to.
bool points_to_const(const llvm::Function& function, const llvm::CallBase& call, unsigned argument) {
    const std::string mangled = function.getName().str();
    llvm::ItaniumPartialDemangler demangler;
    if (demangler.partialDemangle(mangled.c_str())) return reads_only(function, call, argument);
    if (call.hasStructRetAttr()) {
        if (argument == 0) return false;
        --argument;
    }
    const auto text_of = [](char* text) {
        std::string copy = text != nullptr ? text : "";
        std::free(text);
        return copy;
    };
    const std::string parameters = text_of(demangler.getFunctionParameters(nullptr, nullptr));
    std::vector<std::string> types(1);
    int depth = 0;
    for (std::size_t i = 1; i + 1 < parameters.size(); ++i) {
        const char c = parameters[i];
        if (c == '<' || c == '(') ++depth;
        if (c == '>' || c == ')') --depth;
        if (c == ',' && depth == 0)
            types.emplace_back();
        else
            types.back() += c;
    }
    if (types.back().empty()) types.pop_back();
    const std::size_t has_object = call.arg_size() - (call.hasStructRetAttr() ? 1 : 0) > types.size() ? 1 : 0;
    if (has_object == 1 && argument == 0) return llvm::StringRef(mangled).starts_with("_ZNK");
    const std::size_t number = argument - has_object;
    return number < types.size() &&
           (llvm::StringRef(types[number]).ends_with("const&") || llvm::StringRef(types[number]).ends_with("const*"));
}

// Follows a pointer, and those that are read through it, as far as the program's own code takes them; also where they are kept: a local
// variable, or an iterator in one, whose address is passed on.
class Follow {
public:
    Follow(const OwnCode& own, Making& making) : own_(own), making_(making) {}

    bool is_changed(const llvm::Value& pointer) {
        follow(pointer, kInto);
        while (!unseen_.empty()) {
            const auto [next, level] = unseen_.back();
            unseen_.pop_back();
            for (const llvm::Use& use : next->uses())
                if (changes(use, level)) return true;
        }
        return false;
    }

private:
    // What a pointer points to: the static's memory; a place where such a pointer is kept; a place where the address of one is kept; …
    using Level = unsigned;
    static constexpr Level kInto = 0, kLevelMax = 4;

    bool follow(const llvm::Value& pointer, Level level) {
        if (level > kLevelMax) return true;
        if (seen_.insert({&pointer, level}).second) unseen_.push_back({&pointer, level});
        return false;
    }
    bool follow_result(const llvm::Value& result, Level level) {
        const llvm::Type* type = result.getType();
        return type->isPointerTy() || type->isAggregateType() ? follow(result, level) : false;
    }
    // What is read at a place.
    bool follow_read(const llvm::Value& read, Level level) {
        return follow_result(read, level == kInto ? kInto : level - 1);
    }
    // A local variable, or a part of one; null: none.
    static const llvm::AllocaInst* local_of(const llvm::Value& place) {
        return llvm::dyn_cast<llvm::AllocaInst>(place.stripInBoundsOffsets());
    }

    bool changes(const llvm::Use& use, Level level) {
        const llvm::User* user = use.getUser();
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(user);
        if (instruction == nullptr) {
            if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(user))  // that holds its address
                return own_.has(*variable) && !variable->getName().starts_with("llvm.");
            return llvm::isa<llvm::ConstantExpr, llvm::ConstantAggregate>(user) ? follow(*user, level) : true;
        }
        if (!own_.has(*instruction->getFunction()) || making_.has(*instruction)) return false;
        if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(user)) return changes(*store, use, level);
        if (const auto* call = llvm::dyn_cast<llvm::CallBase>(user)) return changes(*call, use, level);
        if (const auto* end = llvm::dyn_cast<llvm::ReturnInst>(user))
            return result_is_changed(*end->getFunction(), level);
        if (llvm::isa<llvm::CmpInst, llvm::PtrToIntInst>(user)) return false;
        if (llvm::isa<llvm::LoadInst>(user)) return follow_read(*user, level);
        if (llvm::isa<llvm::GetElementPtrInst, llvm::CastInst, llvm::PHINode, llvm::SelectInst, llvm::FreezeInst,
                      llvm::InsertValueInst, llvm::ExtractValueInst>(user))
            return follow_result(*user, level);
        return true;
    }
    // Code that is not optimised keeps each pointer in a local variable, and takes it from there.
    bool changes(const llvm::StoreInst& store, const llvm::Use& use, Level level) {
        if (store.getValueOperand() != use.get()) return level == kInto;
        const llvm::AllocaInst* const local = local_of(*store.getPointerOperand());
        return local == nullptr || follow(*local, level + 1);
    }
    bool changes(const llvm::AnyMemTransferInst& copy, const llvm::Use& use, Level level) {
        if (level == kInto) return &use == &copy.getRawDestUse();
        if (&use == &copy.getRawDestUse()) return false;
        const llvm::AllocaInst* const local = local_of(*copy.getRawDest());
        return local == nullptr || follow(*local, level);
    }
    bool changes(const llvm::CallBase& call, const llvm::Use& use, Level level) {
        if (const auto* copy = llvm::dyn_cast<llvm::AnyMemTransferInst>(&call)) return changes(*copy, use, level);
        if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call)) {
            if (intrinsic->isLifetimeStartOrEnd() || intrinsic->isAssumeLikeIntrinsic()) return false;
            if (llvm::isa<llvm::AnyMemSetInst>(intrinsic)) return level == kInto;
            return intrinsic->mayWriteToMemory() ? true : follow_result(call, level);
        }
        const llvm::Function* called = call.getCalledFunction();
        if (called == nullptr || !call.isArgOperand(&use)) return true;
        const llvm::Function* callee = own_.definition_of(*called);
        if (callee == nullptr) callee = called;
        const unsigned number = call.getArgOperandNo(&use);
        const llvm::StringRef name = callee->getName();
        if (name.starts_with("__cxa_") || name.starts_with("pthread_")) return false;  // what makes it, and locks
        // The callee has a copy of the static. A copy of what holds a pointer to it is followed on.
        if (level == kInto && call.isByValArgument(number)) return false;
        if (level == kInto && points_to_const(*callee, call, number)) return follow_result(call, level);
        const bool is_seen = own_.has(*callee) && !callee->empty() && number < callee->arg_size();
        if (is_seen) return follow(*callee->getArg(number), level);
        return level == kInto || !points_to_const(*callee, call, number) || follow_read(call, level);
    }
    bool result_is_changed(const llvm::Function& function, Level level) {
        for (const llvm::GlobalValue* met : own_.met_as(function))
            for (const llvm::Use& use : met->uses()) {
                const auto* call = llvm::dyn_cast<llvm::CallBase>(use.getUser());
                if (call == nullptr || !call->isCallee(&use)) return true;
                if (own_.has(*call->getFunction()) && !making_.has(*call) && follow(*call, level)) return true;
            }
        return false;
    }

    const OwnCode& own_;
    Making& making_;
    std::set<std::pair<const llvm::Value*, Level>> seen_;
    std::vector<std::pair<const llvm::Value*, Level>> unseen_;
};

}  // namespace

Result<std::set<std::string>> changed_at_home(Modules& program, const std::set<std::string>& statics,
                                              const std::function<bool(const llvm::Function&)>& is_sent) {
    std::set<std::string> changed;
    if (statics.empty()) return changed;
    OwnCode own(program, statics, is_sent);
    ROVE_CHECK(own.read());
    for (const auto& [met, definition] : own.definitions()) {
        const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(definition);
        if (variable == nullptr || variable->isThreadLocal()) continue;  // every thread has its own at home, too
        const std::string name = Modules::name_in_program(*variable);
        if (!statics.contains(name) || changed.contains(name)) continue;
        Making making(*variable);
        if (Follow(own, making).is_changed(*met)) changed.insert(name);
    }
    return changed;
}

}  // namespace rove::code::jit
