// A compiler that takes as long as a test wants.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "code/jit/jit.hpp"

namespace rove::code {

inline constexpr auto kPatience = std::chrono::seconds(30);

// Compiles nothing, and the first not before it is let go on.
class SlowEngine final : public jit::Engine {
public:
    Result<std::unique_ptr<jit::CompiledModule>> compile(const jit::CompileRequest& request) override {
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
    Result<jit::Prepared> prepare(const jit::PrepareRequest& /*request*/) override {
        return fail(ErrorCode::internal, "it prepares nothing");
    }
    Status link(const std::vector<std::string>& /*arguments*/) override {
        return fail(ErrorCode::internal, "not asked for");
    }
    Result<std::vector<jit::Extracted>> extract(const jit::ExtractRequest& /*request*/) override {
        return fail(ErrorCode::internal, "it extracts nothing");
    }
    void warm_up() override {}
    std::promise<void> begun, go_on;
    std::atomic<int> compiles{0};
    std::mutex mutex;
    std::vector<std::string> order;  // in which they were compiled
};

}  // namespace rove::code
