// A compiler that takes as long as a test wants.
#pragma once

#include <atomic>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "given_compiler.hpp"

namespace rove::code {

// Compiles nothing, and the first not before it is let go on.
class SlowCompiler final : public CompilesOnly {
public:
    Result<std::unique_ptr<bitcode::CompiledModule>> compile(const bitcode::CompileRequest& request) override {
        {
            const std::lock_guard lock(mutex);
            order.push_back(request.name);
        }
        if (compiles++ == 0) {
            begun.set_value();
            (void)go_on.get_future().wait_for(2 * kPatience);
        }
        return fail(ErrorCode::failed, "{} was not compiled", request.name);
    }
    std::promise<void> begun, go_on;
    std::atomic<int> compiles{0};
    std::mutex mutex;
    std::vector<std::string> order;  // in which they were compiled
};

}  // namespace rove::code
