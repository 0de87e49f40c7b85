#include "bitcode/package/pinning.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <utility>

#include "bitcode/package/following.hpp"
#include "bitcode/package/kept.hpp"
#include "bitcode/values.hpp"
#include "wire/image.hpp"

namespace rove::bitcode {
namespace {

// Whether the address of a function is used for anything but a call.
bool escapes(const llvm::Use& use) {
    const llvm::User* user = use.getUser();
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(user)) return !call->isCallee(&use);
    if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(user))
        return !variable->getName().starts_with("llvm.");
    if (llvm::isa<llvm::Instruction>(user)) return true;
    if (llvm::isa<llvm::BlockAddress, llvm::Function>(user)) return false;  // as its personality routine
    // A constant expression, a member of an aggregate or an alias: its own uses decide.
    return std::any_of(user->use_begin(), user->use_end(), escapes);
}

// A variable that an interface or a library defines. The standard libraries' do not count: the module's addresses are not stored there.
bool is_others_variable(const llvm::GlobalVariable& variable) {
    static constexpr llvm::StringLiteral standard[] = {"stdin",     "stdout", "stderr",       "environ",
                                                       "__environ", "optarg", "__dso_handle", "__stack_chk_guard"};
    const llvm::StringRef name = variable.getName();
    return variable.isDeclaration() && !variable.isConstant() && !variable.use_empty() &&
           !llvm::is_contained(standard, name) && !name.starts_with("_ZSt") && !name.starts_with("_ZNSt") &&
           !name.starts_with("_ZT") && !name.starts_with("llvm.");
}

// Looks for addresses in what the code writes into memory. An address that is composed by arithmetic is found only if its parts are at
// least as wide as a pointer. Memory that the code neither made nor was given, and values that it computes by means unknown here, are
// assumed to contain addresses.
class Addresses {
public:
    // Whether one is written into memory whose address is this value, by any code that uses it.
    [[nodiscard]] bool are_written_to(const llvm::Value& memory) {
        pending_.push_back({Question::written, &memory});
        while (!pending_.empty()) {
            const auto next = pending_.pop_back_val();
            if (seen_.insert(next).second && is_found(next)) return true;
        }
        return false;
    }

private:
    enum class Question : std::uint8_t {
        written,   // is one written into the memory that has this address?
        computed,  // is this value one?
        read       // is one in the memory that this pointer leads to?
    };
    using Asked = std::pair<Question, const llvm::Value*>;

    // Whether one is found here; otherwise what is still to be checked is added to `pending_`.
    [[nodiscard]] bool is_found(Asked asked) {
        switch (asked.first) {
            case Question::written:
                return llvm::any_of(asked.second->uses(), [this](const llvm::Use& use) { return is_written_by(use); });
            case Question::computed: return is_one(*asked.second);
            case Question::read: return is_in(*llvm::getUnderlyingObject(asked.second, 0));
        }
        return true;
    }
    void ask(Question question, const llvm::Value& value) { pending_.push_back({question, &value}); }
    void ask_all(Question question, const llvm::User& user) {
        for (const llvm::Use& operand : user.operands()) ask(question, *operand);
    }

    bool is_written_by(const llvm::Use& use) {
        const llvm::User& user = *use.getUser();
        if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&user)) {
            ask(Question::computed, *store->getValueOperand());
            return false;
        }
        if (const auto* change = llvm::dyn_cast<llvm::AtomicRMWInst>(&user)) {
            ask(Question::computed, *change->getValOperand());
            return false;
        }
        if (const auto* change = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&user)) {
            ask(Question::computed, *change->getNewValOperand());
            return false;
        }
        if (const auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(&user)) {
            if (&use == &copy->getRawDestUse()) ask(Question::read, *copy->getRawSource());
            return false;
        }
        if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&user)) {
            const llvm::Function* callee = call->getCalledFunction();
            if (callee == nullptr || !call->isArgOperand(&use)) return true;
            if (callee->isDeclaration()) {
                look_at_others(*call, use);
                return false;  // otherwise it writes what it computes itself
            }
            if (call->getArgOperandNo(&use) >= callee->arg_size()) return true;
            ask(Question::written, *callee->getArg(call->getArgOperandNo(&use)));
            return false;
        }
        if (const auto* leaves = llvm::dyn_cast<llvm::ReturnInst>(&user))
            return !at_calls(*leaves->getFunction(),
                             [this](const llvm::CallBase& call) { ask(Question::written, call); });
        if (llvm::isa<llvm::LoadInst, llvm::CmpInst>(user)) return false;
        if (llvm::isa<llvm::PtrToIntOperator>(user)) return !is_measured_only(user);
        if (llvm::isa<llvm::GEPOperator, llvm::BitCastOperator, llvm::PHINode, llvm::SelectInst, llvm::FreezeInst>(
                user)) {
            ask(Question::written, user);
            return false;
        }
        return true;
    }

    // Checks the other arguments of a function that is defined elsewhere and may write them into this memory, which it is given as well.
    void look_at_others(const llvm::CallBase& call, const llvm::Use& memory) {
        if (call.getType()->isPtrOrPtrVectorTy())
            ask(Question::written, call);  // it may point into that memory: strchr()
        if (llvm::isa<llvm::MemSetInst>(call)) return;
        const bool writes_values = call.getCalledFunction()->isIntrinsic() && !call.isLifetimeStartOrEnd();
        for (const llvm::Use& other : call.args()) {
            if (&other == &memory) continue;
            if (copies(*call.getCalledFunction()) && other->getType()->isPointerTy()) ask(Question::read, *other);
            if (writes_values && !other->getType()->isPointerTy()) ask(Question::computed, *other);
        }
    }

    bool is_one(const llvm::Value& value) {
        if (const auto* constant = llvm::dyn_cast<llvm::Constant>(&value)) return holds_one(*constant);
        const llvm::Type& type = *value.getType();
        const unsigned bits = type.getScalarSizeInBits();  // of each element of a vector; 0: a pointer, or a composite
        if (type.isPtrOrPtrVectorTy()) return true;
        if (bits != 0 && bits < kPointerBits) return false;
        if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&value)) {
            ask(Question::read, *load->getPointerOperand());
        } else if (const auto* change = llvm::dyn_cast<llvm::AtomicRMWInst>(&value)) {
            ask(Question::read, *change->getPointerOperand());
        } else if (const auto* argument = llvm::dyn_cast<llvm::Argument>(&value)) {
            at_calls(*argument->getParent(), [this, argument](const llvm::CallBase& call) {
                ask(Question::computed, *call.getArgOperand(argument->getArgNo()));
            });
        } else if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&value)) {
            const llvm::Function* callee = call->getCalledFunction();
            if (callee == nullptr) return true;
            if (callee->isIntrinsic())
                for (const llvm::Use& given : call->args()) ask(Question::computed, *given);
            for (const llvm::BasicBlock& block : *callee)
                if (const auto* leaves = llvm::dyn_cast<llvm::ReturnInst>(block.getTerminator()))
                    ask(Question::computed, *leaves->getReturnValue());
        } else if (const auto* both = llvm::dyn_cast<llvm::BinaryOperator>(&value)) {
            if (!type.isFPOrFPVectorTy() && !is_distance(value)) ask_all(Question::computed, *both);
        } else if (llvm::isa<llvm::SIToFPInst, llvm::UIToFPInst, llvm::FPToSIInst, llvm::FPToUIInst, llvm::FPExtInst,
                             llvm::FPTruncInst, llvm::CmpInst, llvm::UnaryOperator>(value)) {
            return false;
        } else if (llvm::isa<llvm::ZExtInst, llvm::SExtInst, llvm::TruncInst, llvm::BitCastInst, llvm::PHINode,
                             llvm::SelectInst, llvm::FreezeInst, llvm::InsertElementInst, llvm::ExtractElementInst,
                             llvm::ShuffleVectorInst, llvm::InsertValueInst, llvm::ExtractValueInst>(value)) {
            ask_all(Question::computed, llvm::cast<llvm::User>(value));
        } else {
            return true;
        }
        return false;
    }

    bool is_in(const llvm::Value& object) {
        if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(&object)) {
            if (variable->isConstant() && variable->hasDefinitiveInitializer())
                return holds_one(*variable->getInitializer());
            return !is_static(*variable) ||
                   may_hold_pointers(*variable->getValueType());  // other statics are checked, too
        }
        if (llvm::isa<llvm::AllocaInst>(object) || llvm::isNoAliasCall(&object)) {
            ask(Question::written, object);
            return false;
        }
        if (const auto* argument = llvm::dyn_cast<llvm::Argument>(&object)) {
            at_calls(*argument->getParent(), [this, argument](const llvm::CallBase& call) {
                ask(Question::read, *call.getArgOperand(argument->getArgNo()));
            });
            return false;
        }
        if (llvm::isa<llvm::PHINode, llvm::SelectInst>(object)) {
            ask_all(Question::read, llvm::cast<llvm::User>(object));
            return false;
        }
        return !llvm::isa<llvm::ConstantData>(object);
    }

    bool holds_one(const llvm::Constant& constant) {
        if (llvm::isa<llvm::ConstantData>(constant)) return false;
        if (llvm::isa<llvm::GlobalValue, llvm::ConstantExpr, llvm::BlockAddress>(constant)) return true;
        return llvm::any_of(constant.operands(),
                            [this](const llvm::Use& part) { return holds_one(*llvm::cast<llvm::Constant>(part)); });
    }

    llvm::SmallVector<Asked, 32> pending_;
    std::set<Asked> seen_;  // nothing was found for these
};

// Whether the module has a place of its own, or one that its node's program or an interface shares, that holds an address from one call to
// the next: by its type, or because an address may be written there.
bool keeps_pointers(const llvm::Module& module) {
    const auto is_used = [&module](const char* name) {
        const llvm::Function* function = module.getFunction(name);
        return function != nullptr && !function->use_empty();
    };
    Addresses addresses;
    return is_used("rove_object") || is_used("rove_host_object") ||
           std::any_of(module.global_begin(), module.global_end(), [&](const llvm::GlobalVariable& variable) {
               return is_others_variable(variable) ||
                      (is_static(variable) &&
                       (may_hold_pointers(*variable.getValueType()) || addresses.are_written_to(variable)));
           });
}

}  // namespace

bool must_stay(const llvm::Module& module) {
    // Functions of the C library that keep a pointer passed to them, to read it later or to pass it on when a thread or the program ends.
    constexpr std::array<std::string_view, 12> kPointToIt{"openlog",
                                                          "putenv",
                                                          "hsearch",
                                                          "hsearch_r",
                                                          "pthread_setspecific",
                                                          "tss_set",
                                                          "__cxa_atexit",
                                                          "__cxa_at_quick_exit",
                                                          "__register_atfork",
                                                          "__cxa_thread_atexit",
                                                          "on_exit",
                                                          wire::kGetThreadLocal};
    for (const std::string_view name : kPointToIt)
        if (const llvm::Function* function = module.getFunction(name); function != nullptr && !function->use_empty())
            return true;
    for (const llvm::Function& function : module)
        if (!function.isDeclaration() && std::any_of(function.use_begin(), function.use_end(), escapes)) return true;
    // A kept pointer to a string literal would dangle when the code is released.
    return are_constants_kept(module, keeps_pointers(module));
}

}  // namespace rove::bitcode
