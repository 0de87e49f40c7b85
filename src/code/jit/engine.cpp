// The one thing that librove-jit.so exports.
#include "code/jit/compile.hpp"
#include "code/jit/jit.hpp"
#include "code/jit/prepare.hpp"

namespace rove::code::jit {
namespace {

class LlvmEngine final : public Engine {
public:
    Result<std::unique_ptr<CompiledModule>> compile(const CompileRequest& request) override {
        return jit::compile(request);
    }
    Result<Prepared> prepare(const PrepareRequest& request) override { return jit::prepare(request); }
};

}  // namespace
}  // namespace rove::code::jit

extern "C" __attribute__((visibility("default"))) rove::code::jit::Engine* rove_jit_engine() {
    // Never destroyed: compiled code may run until the very end of the process.
    static auto* engine = new rove::code::jit::LlvmEngine;
    return engine;
}
