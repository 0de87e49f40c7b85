#include "bitcode/compilable.hpp"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>

#include "base/targets.hpp"
#include "bitcode/assembly.hpp"
#include "wire/image.hpp"
#include "wire/manifest.hpp"

namespace rove::bitcode {
namespace {

// The beginning of the names of intrinsics that only the module's architecture has.
llvm::StringRef own_intrinsics(const llvm::Module& module) {
    const llvm::Triple triple(module.getTargetTriple());
    const Target* const target = target_of_arch(std::string_view(triple.getArchName()));
    return target != nullptr ? target->intrinsics : std::string_view();
}

// Why LLVM would give up on a call of this intrinsic; empty: it would not.
std::string why_not(const llvm::Function& intrinsic) {
    const llvm::StringRef name = intrinsic.getName();
    if (llvm::Function::isTargetIntrinsic(intrinsic.getIntrinsicID()) &&
        !name.starts_with(own_intrinsics(*intrinsic.getParent())))
        return "an instruction of another kind of CPU; write it for this one";
    if (name.starts_with("llvm.coro."))
        return "a part of a coroutine that no optimiser has turned into functions; build it with rove";
    if (name.starts_with("llvm.instrprof.") || name.starts_with("llvm.type."))
        return "left by an option for coverage, profiles or control flow; compile what travels without it";
    return {};
}

// The bytes of the variables that count. A variable that is larger than any bound counts as twice the larger bound, so that no sum overflows.
std::uint64_t bytes_of(const llvm::Module& module, bool (*counts)(const llvm::GlobalVariable&)) {
    constexpr std::uint64_t kTooMany = 2 * wire::kNodeStaticBytesMax;
    std::uint64_t bytes = 0;
    for (const llvm::GlobalVariable& variable : module.globals()) {
        if (variable.isDeclaration() || !counts(variable)) continue;
        const llvm::TypeSize size = module.getDataLayout().getTypeAllocSize(variable.getValueType());
        bytes += size.isScalable() ? kTooMany : std::min<std::uint64_t>(size, kTooMany);
    }
    return bytes;
}

bool is_zero(const llvm::GlobalVariable& variable) {
    return !variable.isConstant() && variable.getInitializer()->isNullValue();
}

// A few bytes of bitcode may represent any number of zeros, which the code generator writes out.
Status check_size(const llvm::Module& module) {
    if (bytes_of(module, [](const llvm::GlobalVariable& each) { return !is_zero(each); }) <= wire::kSliceBytesMax)
        return {};
    return fail(ErrorCode::unsupported,
                "its constants and variables with a value have more than {} bytes, the most that a package may have; "
                "make them when it runs, or use a buffer",
                wire::kSliceBytesMax);
}

}  // namespace

Status check_zeros(const llvm::Module& module) {
    if (bytes_of(module, &is_zero) <= wire::kNodeStaticBytesMax) return {};
    return fail(
        ErrorCode::unsupported,
        "its variables have more than {} bytes, the most for which a node compiles; allocate memory when it runs, "
        "or use a buffer",
        wire::kNodeStaticBytesMax);
}

Status check_compilable(const llvm::Module& module) {
    ROVE_CHECK(check_size(module));
    ROVE_CHECK(check_assembly(module));
    for (const llvm::Function& function : module) {
        if (function.hasGC() && !function.isDeclaration())
            return fail(ErrorCode::unsupported,
                        "{} cannot be compiled: it needs the garbage collector '{}', which no node has",
                        llvm::demangle(function.getName().str()), function.getGC());
        if (!function.isIntrinsic()) continue;
        const std::string why = why_not(function);
        if (why.empty()) continue;
        for (const llvm::User* user : function.users())
            if (const auto* call = llvm::dyn_cast<llvm::Instruction>(user))
                return fail(ErrorCode::unsupported, "{} cannot be compiled: it uses {}, {}",
                            llvm::demangle(call->getFunction()->getName().str()), function.getName().str(), why);
    }
    return {};
}

}  // namespace rove::bitcode
