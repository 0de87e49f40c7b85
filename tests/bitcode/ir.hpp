// LLVM's textual code as modules, for tests of the parts that work on these.
#pragma once

#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/bytes.hpp"
#include "bitcode/emit.hpp"
#include "extraction/modules.hpp"

namespace rove::bitcode {

inline std::unique_ptr<llvm::Module> parsed(llvm::LLVMContext& context, const std::string& text) {
    llvm::SMDiagnostic wrong;
    auto module = llvm::parseAssemblyString(text, wrong, context);
    if (!module)
        throw std::invalid_argument(std::to_string(wrong.getLineNo()) + ": " + wrong.getMessage().str() + "\n" + text);
    module->setTargetTriple("x86_64-unknown-linux-gnu");
    module->setDataLayout("e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128");
    return module;
}

// As a program carries it, module after module.
inline ByteBuffer section_of(std::initializer_list<std::string> modules) {
    ByteBuffer section;
    for (const std::string& text : modules) {
        llvm::LLVMContext context;
        const ByteBuffer module = write_bitcode(*parsed(context, text));
        section.insert(section.end(), module.begin(), module.end());
    }
    return section;
}

// A program of these modules, all of which are read but for their functions' bodies.
class ProgramOf {
public:
    explicit ProgramOf(std::initializer_list<std::string> modules, Modules::IsStrong is_strong = nullptr)
        : section_(section_of(modules)), modules_("program", section_, std::move(is_strong)) {
        for (std::size_t i = 0; i < modules_.count(); ++i) modules_.note_definitions(module(i), i);
    }
    [[nodiscard]] Modules& modules() { return modules_; }
    [[nodiscard]] llvm::Module& module(std::size_t index = 0) { return **modules_.get(index); }
    [[nodiscard]] llvm::Function& function(const std::string& name, std::size_t index = 0) {
        llvm::Function* const found = module(index).getFunction(name);
        if (found == nullptr) throw std::invalid_argument(name);
        return *found;
    }

private:
    const ByteBuffer section_;
    Modules modules_;
};

}  // namespace rove::bitcode
