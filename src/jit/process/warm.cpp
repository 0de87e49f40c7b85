#include "jit/process/warm.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Host.h>

#include "bitcode/emit.hpp"

namespace rove::bitcode {

ByteBuffer warm_module() {
    llvm::LLVMContext context;
    llvm::Module module(kWarmFunction, context);
    module.setTargetTriple(llvm::sys::getDefaultTargetTriple());
    auto* number = llvm::Type::getInt32Ty(context);
    auto* function = llvm::Function::Create(llvm::FunctionType::get(number, {number}, false),
                                            llvm::Function::ExternalLinkage, kWarmFunction, module);
    llvm::IRBuilder<> code(llvm::BasicBlock::Create(context, "", function));
    code.CreateRet(code.CreateAdd(function->getArg(0), code.getInt32(1)));
    return write_bitcode(module);
}

}  // namespace rove::bitcode
