// The one thing that librove-jit.so exports.
#include <llvm-c/Core.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Host.h>

#include "base/made_once.hpp"
#include "code/jit/compile.hpp"
#include "code/jit/emit.hpp"
#include "code/jit/extract.hpp"
#include "code/jit/jit.hpp"
#include "code/jit/link.hpp"
#include "code/jit/prepare.hpp"

namespace rove::code::jit {
namespace {

class LlvmEngine final : public Engine {
public:
    std::array<const void*, 2> code() const override {
        return {reinterpret_cast<const void*>(&jit::prepare), reinterpret_cast<const void*>(&LLVMShutdown)};
    }
    Result<std::unique_ptr<CompiledModule>> compile(const CompileRequest& request) override {
        return jit::compile(request);
    }
    Result<Prepared> prepare(const PrepareRequest& request) override { return jit::prepare(request); }
    void warm_up() override {
        llvm::LLVMContext context;
        llvm::Module module("warm", context);
        module.setTargetTriple(llvm::sys::getDefaultTargetTriple());
        auto* number = llvm::Type::getInt32Ty(context);
        auto* function = llvm::Function::Create(llvm::FunctionType::get(number, {number}, false),
                                                llvm::Function::ExternalLinkage, "warm", module);
        llvm::IRBuilder<> code(llvm::BasicBlock::Create(context, "", function));
        code.CreateRet(code.CreateAdd(function->getArg(0), code.getInt32(1)));
        const Result<Prepared> prepared = prepare({.triple = module.getTargetTriple(),
                                                   .modules = {write_bitcode(module)},
                                                   .interface = false,
                                                   .entries = {"warm"},
                                                   .object = false});
        if (prepared) (void)compile({.name = "warm", .bitcode = prepared->bitcode, .resolve = {}, .in_image = {}});
    }
    Status link(const std::vector<std::string>& arguments) override { return jit::link(arguments); }
    Result<std::vector<Extracted>> extract(const ExtractRequest& request) override { return jit::extract(request); }
};

}  // namespace
}  // namespace rove::code::jit

extern "C" __attribute__((visibility("default"))) rove::code::jit::Engine* rove_jit_engine() {
    // Never destroyed: compiled code may run until the very end of the process.
    static constinit rove::MadeOnce<rove::code::jit::LlvmEngine> engine;
    return &engine.get([] { return new rove::code::jit::LlvmEngine; });
}
