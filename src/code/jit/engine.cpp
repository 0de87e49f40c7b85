// What librove-jit.so exports.
#include <llvm-c/Core.h>
#include <llvm/TargetParser/Host.h>

#include "base/made_once.hpp"
#include "code/jit/jit.hpp"
#include "code/jit/node/compile.hpp"
#include "code/jit/node/compiler/serve.hpp"
#include "code/jit/node/compiler/warm.hpp"
#include "code/jit/package/link.hpp"
#include "code/jit/package/prepare.hpp"
#include "code/jit/program/extract.hpp"

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
        const Result<Prepared> prepared = prepare({.triple = llvm::sys::getDefaultTargetTriple(),
                                                   .modules = {warm_module()},
                                                   .interface = false,
                                                   .entries = {kWarmFunction},
                                                   .object = false});
        if (prepared) (void)compile({.name = kWarmFunction, .bitcode = prepared->bitcode, .resolve = {}});
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

extern "C" [[noreturn]] __attribute__((visibility("default"))) void rove_jit_serve(int socket) {
    rove::code::jit::serve(socket);
}
