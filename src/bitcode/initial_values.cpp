#include "bitcode/initial_values.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Module.h>

#include <vector>

namespace rove::bitcode {
namespace {

using Defined = llvm::DenseMap<llvm::Constant*, llvm::Constant*>;

// False for those that hold none: strings and tables of numbers, of which there are many.
bool may_hold_undef(const llvm::Constant& constant) {
    return llvm::isa<llvm::UndefValue, llvm::ConstantAggregate>(constant);
}

// Poison is a kind of undef. Types of a target's own may have no zero.
llvm::Constant* zero_for(llvm::Constant& undefined) {
    return llvm::isa<llvm::TargetExtType>(undefined.getType()) ? &undefined
                                                               : llvm::Constant::getNullValue(undefined.getType());
}

llvm::Constant* with_parts(llvm::ConstantAggregate& aggregate, const Defined& defined) {
    llvm::SmallVector<llvm::Constant*, 16> parts;
    for (const llvm::Use& use : aggregate.operands()) {
        auto* const part = llvm::cast<llvm::Constant>(use.get());
        llvm::Constant* const known = defined.lookup(part);
        parts.push_back(known != nullptr ? known : part);
    }
    if (llvm::equal(parts, aggregate.operands())) return &aggregate;
    if (auto* const type = llvm::dyn_cast<llvm::StructType>(aggregate.getType()))
        return llvm::ConstantStruct::get(type, parts);
    if (auto* const type = llvm::dyn_cast<llvm::ArrayType>(aggregate.getType()))
        return llvm::ConstantArray::get(type, parts);
    return llvm::ConstantVector::get(parts);
}

// Without recursion, because the nesting of some modules has not been checked.
llvm::Constant* define(llvm::Constant* whole, Defined& defined) {
    std::vector<llvm::Constant*> rest{whole};
    while (!rest.empty()) {
        llvm::Constant* const next = rest.back();
        if (!may_hold_undef(*next) || defined.contains(next)) {
            rest.pop_back();
            continue;
        }
        auto* const aggregate = llvm::dyn_cast<llvm::ConstantAggregate>(next);
        if (aggregate == nullptr) {
            defined[next] = zero_for(*next);
            continue;
        }
        const std::size_t before = rest.size();
        for (const llvm::Use& use : aggregate->operands()) {
            auto* const part = llvm::cast<llvm::Constant>(use.get());
            if (may_hold_undef(*part) && !defined.contains(part)) rest.push_back(part);
        }
        if (rest.size() == before) defined[next] = with_parts(*aggregate, defined);
    }
    llvm::Constant* const known = defined.lookup(whole);
    return known != nullptr ? known : whole;
}

}  // namespace

void define_initial_values(llvm::Module& module) {
    Defined defined;
    for (llvm::GlobalVariable& variable : module.globals())
        if (variable.hasInitializer()) variable.setInitializer(define(variable.getInitializer(), defined));
}

}  // namespace rove::bitcode
