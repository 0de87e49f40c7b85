#include "bitcode/package/kept.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "bitcode/package/following.hpp"
#include "bitcode/values.hpp"

namespace rove::bitcode {
namespace {

// How many loads in succession, beginning at an address, yield further addresses that do not outlive the code: 0 for a text, 1 for a table
// of texts. kAny: any number, and addresses may be loaded as numbers, as from a local variable.
using Levels = unsigned;
constexpr Levels kAny = ~0U;

// The levels of constants.
class Depths {
public:
    // Of what the constant consists of.
    Levels of(const llvm::Constant& constant) {
        if (llvm::isa<llvm::BlockAddress>(constant)) return 1;
        if (llvm::isa<llvm::Function>(constant)) return 0;  // pinning.cpp looks for these
        if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(&constant)) {
            if (!variable->isConstant() || variable->isDeclaration()) return 0;
            const Levels inner = of_variable(*variable);
            return inner < kMax ? inner + 1 : kAny;
        }
        Levels most = 0;
        for (const llvm::Use& part : constant.operands()) most = std::max(most, of(*llvm::cast<llvm::Constant>(part)));
        return most;
    }

private:
    Levels of_variable(const llvm::GlobalVariable& variable) {
        const auto [known, is_new] = known_.try_emplace(&variable, kAny);  // which stays for one that leads to itself
        if (!is_new || level_ == kMax) return known->second;
        ++level_;
        const Levels found = of(*variable.getInitializer());
        --level_;
        return known_[&variable] = found;
    }

    static constexpr Levels kMax = 8;  // bounds the recursion, too
    unsigned level_ = 0;
    std::map<const llvm::GlobalVariable*, Levels> known_;
};

// Whether a constant contains the address of a global value as a number.
bool has_addresses_in_numbers(const llvm::Constant& constant) {
    if (llvm::isa<llvm::GlobalValue, llvm::BlockAddress, llvm::ConstantData>(constant)) return false;
    if (constant.getType()->isIntegerTy(kPointerBits)) return true;
    return llvm::any_of(constant.operands(), [](const llvm::Use& part) {
        return has_addresses_in_numbers(*llvm::cast<llvm::Constant>(part));
    });
}

// Whether the source loads a number here, as the compiler's notes on types say. What it loads as bytes or as a pointer, or without a note,
// may be an address that is copied.
bool is_of_numbers(const llvm::LoadInst& load) {
    const llvm::MDNode* tag = load.getMetadata(llvm::LLVMContext::MD_tbaa);
    if (!load.getType()->isIntOrIntVectorTy() || tag == nullptr || tag->getNumOperands() < 2) return false;
    const auto* type = llvm::dyn_cast<llvm::MDNode>(tag->getOperand(1));
    const auto* name =
        type != nullptr && type->getNumOperands() > 0 ? llvm::dyn_cast<llvm::MDString>(type->getOperand(0)) : nullptr;
    return name != nullptr && name->getString() != "omnipotent char" && !name->getString().contains("pointer");
}

// Follows addresses through the code until one is stored in memory that outlives the call. What is done with one by means unknown here counts
// as that.
class Following {
public:
    explicit Following(bool by_calls) : by_calls_(by_calls) {}

    [[nodiscard]] bool is_kept(const llvm::Constant& constant, Levels levels) {
        follow(constant, levels);
        while (!pending_.empty()) {
            const Followed next = pending_.pop_back_val();
            if (!seen_.insert(next).second) continue;
            if (llvm::any_of(std::get<0>(next)->uses(), [&](const llvm::Use& use) { return is_kept_by(use, next); }))
                return true;
        }
        return false;
    }

private:
    // The value is an address of a constant, or of a local variable that holds one; its levels; of an aggregate, the number of the
    // member that is the address, or kEach.
    using Followed = std::tuple<const llvm::Value*, Levels, unsigned>;
    static constexpr unsigned kEach = ~0U;

    void follow(const llvm::Value& value, Levels levels, unsigned member = kEach) {
        if (has_room(*value.getType())) pending_.push_back({&value, levels, member});
    }
    // Whether a value of this type may be an address, or contain one. In a place of the package's own, half of one suffices: it may be
    // the distance to the place.
    [[nodiscard]] bool has_room(const llvm::Type& type) const {
        const unsigned bits = type.getScalarSizeInBits();  // of each element of a vector; 0: a pointer, or a composite
        return type.isPtrOrPtrVectorTy() || type.isAggregateType() ||
               bits >= (by_calls_ ? kPointerBits / 2 : kPointerBits);
    }

    // Whether this use keeps it; otherwise what becomes of it is followed.
    bool is_kept_by(const llvm::Use& use, const Followed& followed) {
        const auto& [value, levels, member] = followed;
        const llvm::User& user = *use.getUser();
        if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&user)) return is_kept_by_call(*call, use, levels);
        if (const auto* constant = llvm::dyn_cast<llvm::Constant>(&user)) return is_kept_in(*constant, use, levels);
        if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&user))
            return use.getOperandNo() != llvm::StoreInst::getPointerOperandIndex() &&
                   !is_within(*store->getValueOperand(), *store->getPointerOperand()) &&
                   !is_local(*store->getPointerOperand());
        if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&user)) {
            if (levels == 0 || load->getType()->isFPOrFPVectorTy()) return false;
            if (levels == kAny)
                follow(*load, kAny);
            else if (!is_of_numbers(*load))
                follow(*load, levels - 1);
            return false;
        }
        if (const auto* leaves = llvm::dyn_cast<llvm::ReturnInst>(&user))
            return !at_calls(*leaves->getFunction(), [&](const llvm::CallBase& call) { follow(call, levels, member); });
        if (const auto* into = llvm::dyn_cast<llvm::InsertValueInst>(&user)) {
            follow(*into, levels, use.getOperandNo() == 0 ? member : into->getIndices().front());
            return false;
        }
        if (const auto* from = llvm::dyn_cast<llvm::ExtractValueInst>(&user)) {
            if (member == kEach || member == from->getIndices().front()) follow(*from, levels);
            return false;
        }
        if (const auto* both = llvm::dyn_cast<llvm::BinaryOperator>(&user)) {
            if (!both->getType()->isFPOrFPVectorTy() && !is_distance(*both)) follow(*both, levels);
            return false;
        }
        if (llvm::isa<llvm::CmpInst, llvm::SIToFPInst, llvm::UIToFPInst, llvm::FPToSIInst, llvm::FPToUIInst,
                      llvm::FPExtInst, llvm::FPTruncInst, llvm::UnaryOperator, llvm::LandingPadInst,
                      llvm::IndirectBrInst, llvm::SwitchInst>(user))
            return false;
        if (llvm::isa<llvm::GetElementPtrInst, llvm::CastInst, llvm::PHINode, llvm::SelectInst, llvm::FreezeInst,
                      llvm::InsertElementInst, llvm::ExtractElementInst, llvm::ShuffleVectorInst>(user)) {
            follow(user, levels, member);
            return false;
        }
        return true;
    }

    // Another constant that contains it, or is computed from it.
    bool is_kept_in(const llvm::Constant& user, const llvm::Use& use, Levels levels) {
        // What is loaded from a constant is followed from there.
        if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(&user))
            return !variable->isConstant() && !variable->getName().starts_with("llvm.");
        if (!llvm::isa<llvm::BlockAddress, llvm::Function>(user))  // as its personality routine
            follow(user, levels, llvm::isa<llvm::ConstantStruct>(user) ? use.getOperandNo() : kEach);
        return false;
    }

    bool is_kept_by_call(const llvm::CallBase& call, const llvm::Use& use, Levels levels) {
        if (!call.isArgOperand(&use)) return !call.isBundleOperand(&use) || !llvm::isa<llvm::AssumeInst>(call);
        const unsigned number = call.getArgOperandNo(&use);
        const auto* callee = llvm::dyn_cast<llvm::Function>(call.getCalledOperand()->stripPointerCastsAndAliases());
        if (levels > 0 && callee != nullptr && is_copied_by(*callee, number) &&
            !is_local(*call.getArgOperand(number == 0 ? 1 : 0)))
            return true;
        if (callee == nullptr) return is_kept_by_others(call, number, "", levels);
        if (callee->isIntrinsic()) return is_kept_by_intrinsic(call, use, levels);
        if (callee->isDeclaration()) return is_kept_by_others(call, number, callee->getName(), levels);
        if (number < callee->arg_size()) {
            follow(*callee->getArg(number), levels);
            return false;
        }
        // It reads these through a list.
        for (const llvm::BasicBlock& block : *callee)
            for (const llvm::Instruction& each : block)
                if (const auto* list = llvm::dyn_cast<llvm::VAStartInst>(&each))
                    if (!is_local(*list->getArgList())) return true;
        return false;
    }

    // Whether the function copies from the memory that this argument points to.
    static bool is_copied_by(const llvm::Function& callee, unsigned argument) {
        switch (callee.getIntrinsicID()) {
            case llvm::Intrinsic::memcpy:
            case llvm::Intrinsic::memcpy_inline:
            case llvm::Intrinsic::memmove:
            case llvm::Intrinsic::vacopy: return argument == 1;
            default: return copies(callee) && argument == (callee.getName().contains("bcopy") ? 0 : 1);
        }
    }

    // A function of a library or an interface, or one whose address is computed, which is no function of the package either.
    bool is_kept_by_others(const llvm::CallBase& call, unsigned number, llvm::StringRef name, Levels levels) {
        // The ABI keeps only the arguments of callbacks, and returns none of its arguments.
        if (name.starts_with("rove_") && name != "rove_pending_notify") return false;
        if (call.doesNotCapture(number)) return false;
        // A std::exception_ptr to what is thrown may outlive the call, and leads to its type.
        if (name == "__cxa_throw" && number == 1) return true;
        const llvm::Value* returned = call.getReturnedArgOperand();
        const bool may_return = (may_hold_pointers(*call.getType()) || call.isInlineAsm()) &&
                                name != "__dynamic_cast" && !llvm::isNoAliasCall(&call) &&
                                (returned == nullptr || returned == call.getArgOperand(number));
        if (may_return) follow(call, levels);
        return by_calls_;
    }

    bool is_kept_by_intrinsic(const llvm::CallBase& call, const llvm::Use& use, Levels levels) {
        const bool reads = !call.doesNotAccessMemory();
        if (levels > 0 || !reads || call.getType()->isPtrOrPtrVectorTy()) follow(call, levels);
        return reads && !call.onlyReadsMemory() && !use->getType()->isPointerTy();  // as a masked store does
    }

    // Whether the place of a store is in what is stored: an object has a pointer to itself. So it is no constant, because it is written to.
    static bool is_within(const llvm::Value& value, const llvm::Value& place) {
        const llvm::Value* object = llvm::getUnderlyingObject(&value, 0);
        return object == llvm::getUnderlyingObject(&place, 0) && !llvm::isa<llvm::AllocaInst, llvm::Constant>(object);
    }

    // Whether the memory ends with the call at the latest. What is read out of it is followed then.
    bool is_local(const llvm::Value& memory) {
        const llvm::Value& object = *llvm::getUnderlyingObject(&memory, 0);
        if (llvm::isa<llvm::AllocaInst>(object)) {
            follow(object, kAny);
            return true;
        }
        if (const auto* argument = llvm::dyn_cast<llvm::Argument>(&object)) {
            if (!places_.insert(argument).second) return true;  // where it was found first, its verdict counts
            bool all = true;
            return at_calls(*argument->getParent(),
                            [&](const llvm::CallBase& call) {
                                all = all && is_local(*call.getArgOperand(argument->getArgNo()));
                            }) &&
                   all;
        }
        if (llvm::isa<llvm::PHINode, llvm::SelectInst>(object)) {
            if (!places_.insert(&object).second) return true;
            return llvm::all_of(llvm::cast<llvm::User>(object).operands(), [this](const llvm::Use& each) {
                return !each->getType()->isPointerTy() || is_local(*each);
            });
        }
        return false;
    }

    const bool by_calls_;
    llvm::SmallVector<Followed, 32> pending_;
    std::set<Followed> seen_;              // none of these is kept
    std::set<const llvm::Value*> places_;  // all of these are local
};

}  // namespace

bool are_constants_kept(const llvm::Module& module, bool by_calls) {
    Following following(by_calls);
    const auto is_constant = [](const llvm::GlobalVariable& variable) {
        return variable.isConstant() && !variable.isDeclaration();
    };
    const bool numbers = llvm::any_of(module.globals(), [&](const llvm::GlobalVariable& variable) {
        return is_constant(variable) && has_addresses_in_numbers(*variable.getInitializer());
    });
    Depths depths;
    for (const llvm::GlobalVariable& variable : module.globals()) {
        if (!is_constant(variable)) continue;
        const Levels levels = depths.of(*variable.getInitializer());
        if (following.is_kept(variable, levels > 0 && numbers ? kAny : levels)) return true;
    }
    for (const llvm::Function& function : module)
        for (const llvm::BasicBlock& block : function)
            if (const llvm::BlockAddress* label = llvm::BlockAddress::lookup(&block))
                if (following.is_kept(*label, 0)) return true;
    return false;
}

}  // namespace rove::bitcode
