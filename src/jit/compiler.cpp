// What librove-jit.so exports.
#include "bitcode/compiler.hpp"

#include <llvm-c/Core.h>
#include <llvm/TargetParser/Host.h>

#include "base/made_once.hpp"
#include "bitcode/package/link.hpp"
#include "bitcode/package/prepare.hpp"
#include "extraction/extract.hpp"
#include "jit/compile.hpp"
#include "jit/process/serve.hpp"
#include "jit/process/warm.hpp"

namespace rove::bitcode {
namespace {

class LlvmCompiler final : public Compiler {
public:
    std::array<const void*, 2> code() const override {
        return {reinterpret_cast<const void*>(&bitcode::prepare), reinterpret_cast<const void*>(&LLVMShutdown)};
    }
    Result<std::unique_ptr<CompiledModule>> compile(const CompileRequest& request) override {
        return bitcode::compile(request);
    }
    void free_modules() override { bitcode::free_modules(); }
    Result<Prepared> prepare(const PrepareRequest& request) override { return bitcode::prepare(request); }
    void warm_up() override {
        const Result<Prepared> prepared = prepare({.triple = llvm::sys::getDefaultTargetTriple(),
                                                   .modules = {warm_module()},
                                                   .interface = false,
                                                   .entries = {kWarmFunction},
                                                   .object = false});
        if (prepared) (void)compile({.name = kWarmFunction, .bitcode = prepared->bitcode, .resolve = {}});
    }
    Status link(const std::vector<std::string>& arguments) override { return bitcode::link(arguments); }
    Result<std::vector<Extracted>> extract_all(const ExtractRequest& request) override {
        return bitcode::extract_all(request);
    }
    Status read_own(const ProgramBitcode& own) override { return bitcode::read_own(own); }
    Result<Extracted> extract_own(const ProgramBitcode& own, std::string_view key) override {
        return bitcode::extract_own(own, key);
    }
};

}  // namespace
}  // namespace rove::bitcode

extern "C" __attribute__((visibility("default"))) rove::bitcode::Compiler* rove_jit_compiler() {
    // Never destroyed, because compiled code may run until the process ends.
    static constinit rove::MadeOnce<rove::bitcode::LlvmCompiler> compiler;
    return &compiler.get([] { return new rove::bitcode::LlvmCompiler; });
}

extern "C" [[noreturn]] __attribute__((visibility("default"))) void rove_jit_serve(int socket) {
    rove::bitcode::serve(socket);
}
