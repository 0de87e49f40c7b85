#include "extraction/home/follow.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>

#include "bitcode/values.hpp"

namespace rove::bitcode {
namespace {

// The only value that a local variable ever has; null: it has several, or other code may write it.
const llvm::Value* only_value_of(const llvm::AllocaInst& local) {
    const llvm::Value* value = nullptr;
    for (const llvm::User* user : local.users()) {
        if (llvm::isa<llvm::LoadInst>(user)) continue;
        if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(user);
            intrinsic != nullptr && (intrinsic->isLifetimeStartOrEnd() || intrinsic->isAssumeLikeIntrinsic()))
            continue;
        // If an iterator is passed in a register, its pointer is all that is stored.
        if (llvm::isa<llvm::GetElementPtrInst>(user)) {
            for (const llvm::User* part : user->users()) {
                if (llvm::isa<llvm::LoadInst>(part)) continue;
                const auto* store = llvm::dyn_cast<llvm::StoreInst>(part);
                if (store == nullptr || store->getValueOperand() == user || value != nullptr) return nullptr;
                value = store->getValueOperand();
            }
            continue;
        }
        const auto* store = llvm::dyn_cast<llvm::StoreInst>(user);
        if (store == nullptr || store->getValueOperand() == &local || value != nullptr) return nullptr;
        value = store->getValueOperand();
    }
    return value;
}

// A shared_ptr's count is not a part of what it points to.
bool counts_references(llvm::StringRef name) {
    return name.contains("_Sp_counted_base") || name.contains("14__shared_count") ||
           name.contains("19__shared_weak_count");
}

// Locks it, waits for it, or frees it: its state is the same when no thread uses it any more.
bool uses_lock(llvm::StringRef name) {
    if (name.starts_with("_ZNSt18condition_variable10notify_")) return true;
    if (!name.consume_front("pthread_")) return false;
    for (const llvm::StringRef kind : {"mutex_", "rwlock_", "spin_", "cond_", "barrier_"})
        if (name.consume_front(kind)) return name != "init" && !name.starts_with("set");
    return false;
}

// Functions of libstdc++'s checks (_GLIBCXX_DEBUG): they change the list of iterators that each container has, and compose error messages.
bool checks_containers(llvm::StringRef name) {
    if (!name.consume_front("_ZN")) return false;
    name.consume_front("K");
    return name.consume_front("11__gnu_debug") &&
           (name.starts_with("16_Error_formatter") || name.starts_with("19_Safe_iterator_base") ||
            name.starts_with("19_Safe_sequence_base"));
}

}  // namespace

bool Follow::is_changed(const llvm::Value& pointer) {
    if (follow(pointer, kInto, kAnyCall)) return true;
    while (!unseen_.empty()) {
        const auto [next, level, context] = unseen_.back();
        unseen_.pop_back();
        for (const llvm::Use& use : next->uses())
            if (changes(use, level, context)) return true;
    }
    return false;
}

bool Follow::follow(const llvm::Value& pointer, Level level, Context context) {
    if (level > kLevelMax) return unknown(context);
    if (!seen_.insert({&pointer, level, context}).second) return false;
    unseen_.push_back({&pointer, level, context});
    return seen_.size() > kStatesMax;
}

bool Follow::follow_result(const llvm::Value& result, Level level, Context context) {
    const llvm::Type* type = result.getType();
    return type->isPointerTy() || type->isAggregateType() ? follow(result, level, context) : false;
}

// Follows a value that is read from a place.
bool Follow::follow_read(const llvm::Value& read, Level level, Context context) {
    return follow_result(read, level == kInto ? kInto : level - 1, context);
}

// From here on the place holds such a pointer. The place is a local variable, or memory of the caller to which a parameter points.
bool Follow::keep(const llvm::Value& place, Level level, Context context) {
    const llvm::Value& base = base_of(place);
    if (llvm::isa<llvm::AllocaInst>(base)) return follow(base, level, context);
    const auto* parameter = llvm::dyn_cast<llvm::Argument>(&base);
    if (parameter == nullptr) return unknown(context);
    return follow(*parameter, level, context) ||
           (!parameter->hasByValAttr() && keep_in_callers(*parameter, level, context));
}

// A variable holds such a pointer from the beginning.
bool Follow::follow_kept_in(const llvm::GlobalVariable& variable, Level level) {
    for (const llvm::GlobalValue* met : own_.met_as(variable))
        if (follow(*met, level + 1, kAnyCall)) return true;
    return follow(variable, level + 1, kAnyCall);
}

bool Follow::keep_in_callers(const llvm::Argument& parameter, Level level, Context context) {
    if (level > kLevelMax) return unknown(context);
    if (!kept_.insert({&parameter, level, context}).second) return false;
    const auto keep_at = [&](const llvm::CallBase& call, Context caller) {
        return parameter.getArgNo() < call.arg_size() && keep(*call.getArgOperand(parameter.getArgNo()), level, caller);
    };
    if (context != kAnyCall) return keep_at(*entered_[context].call, entered_[context].from);
    return for_each_call(*parameter.getParent(), [&](const llvm::CallBase& call) { return keep_at(call, kAnyCall); });
}

bool Follow::give_back(const llvm::Function& function, Level level, Context context) {
    if (context != kAnyCall) return follow_result(*entered_[context].call, level, entered_[context].from);
    return for_each_call(function, [&](const llvm::CallBase& call) { return follow_result(call, level, kAnyCall); });
}

template <typename Does>
bool Follow::for_each_call(const llvm::Function& function, Does does) {
    for (const llvm::GlobalValue* met : own_.met_as(function))
        for (const llvm::Use& use : met->uses()) {
            const auto* call = llvm::dyn_cast<llvm::CallBase>(use.getUser());
            if (call == nullptr || !call->isCallee(&use)) return true;
            if (own_.has(*call->getFunction()) && !making_.has(*call) && does(*call)) return true;
        }
    return false;
}

const llvm::Function* Follow::callee_of(const llvm::CallBase& call) const {
    const auto* called = llvm::dyn_cast<llvm::Function>(call.getCalledOperand()->stripPointerCastsAndAliases());
    if (called == nullptr) return nullptr;
    const llvm::Function* definition = own_.definition_of(*called);
    return definition != nullptr ? definition : called;
}

// The local variable, parameter or other value that a place is a part of.
const llvm::Value& Follow::base_of(const llvm::Value& place) const {
    return base_of(place, 32);
}

const llvm::Value& Follow::base_of(const llvm::Value& place, unsigned more) const {
    const llvm::Value* base = llvm::getUnderlyingObject(&place, 0);
    for (; more > 0; --more) {
        const llvm::Value* next = nullptr;
        if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(base)) {
            const auto* local = llvm::dyn_cast<llvm::AllocaInst>(load->getPointerOperand()->stripInBoundsOffsets());
            next = local != nullptr ? only_value_of(*local) : nullptr;
        } else if (const auto* call = llvm::dyn_cast<llvm::CallBase>(base)) {
            next = argument_returned(*call, more / 2);
        }
        if (next == nullptr || !next->getType()->isPointerTy()) break;
        base = llvm::getUnderlyingObject(next, 0);
    }
    return *base;
}

// The argument that a function returns unchanged, as std::move() and placement new do.
const llvm::Value* Follow::argument_returned(const llvm::CallBase& call, unsigned more) const {
    const llvm::Function* callee = callee_of(call);
    if (callee == nullptr || !is_seen(*callee)) return nullptr;
    const llvm::ReturnInst* end = nullptr;
    for (const llvm::BasicBlock& block : *callee)
        if (const auto* each = llvm::dyn_cast<llvm::ReturnInst>(block.getTerminator())) {
            if (end != nullptr || each->getReturnValue() == nullptr) return nullptr;
            end = each;
        }
    if (end == nullptr || !end->getReturnValue()->getType()->isPointerTy()) return nullptr;
    const auto* parameter = llvm::dyn_cast<llvm::Argument>(&base_of(*end->getReturnValue(), more));
    return parameter != nullptr && parameter->getArgNo() < call.arg_size() ? call.getArgOperand(parameter->getArgNo())
                                                                           : nullptr;
}

bool Follow::changes(const llvm::Use& use, Level level, Context context) {
    const llvm::User* user = use.getUser();
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(user);
    if (instruction == nullptr) {
        if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(user))
            return own_.has(*variable) && !variable->getName().starts_with("llvm.") && follow_kept_in(*variable, level);
        return llvm::isa<llvm::ConstantExpr, llvm::ConstantAggregate>(user) ? follow(*user, level, context) : true;
    }
    if (!own_.has(*instruction->getFunction()) || making_.has(*instruction)) return false;
    if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(user)) return changes(*store, use, level, context);
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(user)) return changes(*call, use, level, context);
    if (const auto* end = llvm::dyn_cast<llvm::ReturnInst>(user)) return give_back(*end->getFunction(), level, context);
    if (llvm::isa<llvm::CmpInst, llvm::PtrToIntInst, llvm::IndirectBrInst>(user)) return false;
    if (llvm::isa<llvm::LoadInst>(user)) return follow_read(*user, level, context);
    if (llvm::isa<llvm::GetElementPtrInst, llvm::CastInst, llvm::PHINode, llvm::SelectInst, llvm::FreezeInst,
                  llvm::InsertValueInst, llvm::ExtractValueInst>(user))
        return follow_result(*user, level, context);
    return instruction->mayWriteToMemory() && level == kInto ? true : unknown(context);
}

bool Follow::changes(const llvm::StoreInst& store, const llvm::Use& use, Level level, Context context) {
    if (store.getValueOperand() != use.get()) return level == kInto;
    return keep(*store.getPointerOperand(), level + 1, context);
}

// A copy of the static has its pointers, if any.
bool Follow::changes(const llvm::AnyMemTransferInst& copy, const llvm::Use& use, Level level, Context context) {
    if (&use == &copy.getRawDestUse()) return level == kInto;
    if (level > kInto) return keep(*copy.getRawDest(), level, context);
    const auto* local = llvm::dyn_cast<llvm::AllocaInst>(&base_of(*copy.getRawDest()));
    return local != nullptr && may_hold_pointers(*local->getAllocatedType()) && follow(*local, level + 1, context);
}

bool Follow::changes(const llvm::CallBase& call, const llvm::Use& use, Level level, Context context) {
    if (const auto* copy = llvm::dyn_cast<llvm::AnyMemTransferInst>(&call)) return changes(*copy, use, level, context);
    if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call)) {
        if (intrinsic->isLifetimeStartOrEnd() || intrinsic->isAssumeLikeIntrinsic()) return false;
        if (llvm::isa<llvm::AnyMemSetInst>(intrinsic)) return level == kInto;
        return intrinsic->mayWriteToMemory() ? true : follow_result(call, level, context);
    }
    if (call.isCallee(&use)) return false;
    const llvm::Function* callee = callee_of(call);
    if (callee == nullptr || !call.isArgOperand(&use)) return unknown(context);
    const llvm::StringRef name = callee->getName();
    if (name.starts_with("__cxa_") || uses_lock(name)) return false;  // what initialises it, and locks
    if (counts_references(name) || checks_containers(name)) return false;
    const unsigned number = call.getArgOperandNo(&use);
    if (constness_.of(*callee, call, number) == Constness::kAll) return false;
    if (is_seen(*callee) && number < callee->arg_size()) return enter(*callee, call, number, level, context);
    if (level == kInto && call.isByValArgument(number)) return false;  // the callee has a copy
    if (constness_.of(*callee, call, number) == 0)
        return unknown(context) || (level == kInto && follow_result(call, level, context));
    return Constness::may_give_back(*callee, number) && follow_read(call, level, context);
}

bool Follow::enter(const llvm::Function& callee, const llvm::CallBase& call, unsigned argument, Level level,
                   Context context) {
    const bool is_const = entered_[context].is_const || constness_.of(callee, call, argument) > level;
    Context into = context;  // for a recursive call the context of the first entry
    while (into != kAnyCall && (entered_[into].call != &call || entered_[into].is_const != is_const))
        into = entered_[into].from;
    if (into == kAnyCall) {
        const unsigned depth = entered_[context].depth + 1;
        if (depth > kDepthMax) return unknown(context);
        const auto [known, is_new] = contexts_.try_emplace({context, &call, is_const}, entered_.size());
        if (is_new) entered_.push_back({context, &call, is_const, depth});
        into = known->second;
    }
    // A parameter passed by value is a copy, which has the original's pointers.
    return follow(*callee.getArg(argument), level == kInto && call.isByValArgument(argument) ? level + 1 : level, into);
}

}  // namespace rove::bitcode
