#include "code/jit/compile.hpp"
namespace rove::code::jit {
Result<std::unique_ptr<CompiledModule>> compile(const CompileRequest&) { return fail(ErrorCode::unsupported, "not yet"); }
}
