// Compilers that do what a test says, where a real one would have to be LLVM, in a process of its own.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bitcode/compiler.hpp"

namespace rove::code {

// How long a test waits for what must come.
inline constexpr auto kPatience = std::chrono::seconds(30);

// A compiler for nodes, which only compile.
class CompilesOnly : public bitcode::Compiler {
public:
    Result<bitcode::Prepared> prepare(const bitcode::PrepareRequest& /*request*/) override {
        return fail(ErrorCode::internal, "it prepares nothing");
    }
    Status link(const std::vector<std::string>& /*arguments*/) override {
        return fail(ErrorCode::internal, "not asked for");
    }
    Result<std::vector<bitcode::Extracted>> extract_all(const bitcode::ExtractRequest& /*request*/) override {
        return fail(ErrorCode::internal, "it extracts nothing");
    }
    Status read_own(const bitcode::ProgramBitcode& /*own*/) override {
        return fail(ErrorCode::internal, "it reads nothing");
    }
    Result<bitcode::Extracted> extract_own(const bitcode::ProgramBitcode& /*own*/, std::string_view /*key*/) override {
        return fail(ErrorCode::internal, "it extracts nothing");
    }
    void warm_up() override {}
};

// A module that has what a test gives it.
class GivenModule final : public bitcode::CompiledModule {
public:
    void* find(std::string_view name) const override {
        const auto found = names.find(name);
        return found != names.end() ? found->second : nullptr;
    }
    std::size_t code_bytes() const override { return bytes; }
    bool has_constructors() const override { return constructors != nullptr; }
    bool has_own_statics() const override { return own_statics; }
    void run_constructors() override { constructors(); }
    bool can_put(std::string_view /*name*/) const override { return takes_names; }
    Status put(const std::vector<std::pair<std::string_view, void*>>& given) override {
        if (!has_memory) return fail(ErrorCode::overloaded, "there is no memory");
        for (const auto& [name, address] : given) was_put.emplace_back(name, address);
        return {};
    }

    std::map<std::string, void*, std::less<>> names;  // that it defines
    std::size_t bytes = 100;
    std::function<void()> constructors;
    bool own_statics = false, takes_names = true, has_memory = true;
    std::vector<std::pair<std::string, void*>> was_put;
};

class GivenCompiler final : public CompilesOnly {
public:
    Result<std::unique_ptr<bitcode::CompiledModule>> compile(const bitcode::CompileRequest& request) override {
        return compiles(request);
    }
    void warm_up() override { warms_up(); }
    void free_modules() override { frees_modules(); }

    std::function<Result<std::unique_ptr<bitcode::CompiledModule>>(const bitcode::CompileRequest&)> compiles;
    std::function<void()> warms_up = [] {}, frees_modules = [] {};
};

}  // namespace rove::code
