#include "bitcode/library_calls.hpp"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <optional>

namespace rove::bitcode {
namespace {

// A copy of so many bytes becomes loads and stores on each CPU: it takes four of the largest registers that all of them have.
constexpr std::uint64_t kCopiedInline = 64;

// C's ending of the functions that compute in a type: `roundf`, `round`, `roundl`.
std::optional<std::string> ending_of(const llvm::Type& type) {
    const llvm::Type& scalar = *type.getScalarType();
    if (scalar.isDoubleTy()) return "";
    if (scalar.isX86_FP80Ty() || scalar.isFP128Ty()) return "l";
    if (scalar.isFloatTy() || scalar.isHalfTy() || scalar.isBFloatTy()) return "f";
    return std::nullopt;
}

std::string of_memory(const llvm::MemIntrinsic& intrinsic) {
    const auto* const length = llvm::dyn_cast<llvm::ConstantInt>(intrinsic.getLength());
    if (length != nullptr && length->getValue().ule(kCopiedInline)) return {};
    if (llvm::isa<llvm::MemCpyInlineInst, llvm::MemSetInlineInst>(intrinsic)) return {};
    return llvm::isa<llvm::MemCpyInst>(intrinsic)   ? "memcpy"
           : llvm::isa<llvm::MemSetInst>(intrinsic) ? "memset"
                                                    : "memmove";
}

}  // namespace

std::string library_call_of(const llvm::Instruction& instruction) {
    if (instruction.getOpcode() == llvm::Instruction::FRem) {
        const std::optional<std::string> ending = ending_of(*instruction.getType());
        return ending ? "fmod" + *ending : "";
    }
    const auto* const intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (intrinsic == nullptr) return {};
    if (const auto* const memory = llvm::dyn_cast<llvm::MemIntrinsic>(intrinsic)) return of_memory(*memory);
    if (intrinsic->arg_size() == 0) return {};
    const std::optional<std::string> ending = ending_of(*intrinsic->getArgOperand(0)->getType());
    if (!ending) return {};
    llvm::StringRef name = intrinsic->getCalledFunction()->getName();
    (void)name.consume_front("llvm.");
    (void)name.consume_front("experimental.constrained.");
    name = name.split('.').first;
    if (name == "minnum") name = "fmin";
    if (name == "maxnum") name = "fmax";
    if (name == "frem") name = "fmod";
    return name.str() + *ending;
}

std::set<std::string> library_calls_of(const llvm::Module& module) {
    std::set<std::string> names;
    for (const llvm::Function& function : module)
        for (const llvm::Instruction& each : llvm::instructions(function))
            if (std::string name = library_call_of(each); !name.empty()) names.insert(std::move(name));
    return names;
}

}  // namespace rove::bitcode
