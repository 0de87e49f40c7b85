// Reading bitcode that nobody vouches for: LLVM's reader and verifier have the say, and its diagnostics become errors.
#pragma once

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "code/jit/nesting.hpp"

namespace rove::code::jit {

// Collects the errors of one context: without a handler LLVM prints an error and calls exit(). Names of values within functions are not
// kept: nobody reads them.
inline void set_up(llvm::LLVMContext& context, std::string& errors) {
    context.setDiscardValueNames(true);
    context.setDiagnosticHandlerCallBack(
        [](const llvm::DiagnosticInfo* info, void* into) {
            if (info->getSeverity() != llvm::DS_Error) return;
            auto& text = *static_cast<std::string*>(into);
            if (!text.empty()) text += "; ";
            llvm::raw_string_ostream out(text);
            llvm::DiagnosticPrinterRawOStream printer(out);
            info->print(printer);
        },
        &errors);
}

// of_peer: it has come from another node, and not from a compiler here.
inline Result<std::unique_ptr<llvm::Module>> read_module(llvm::LLVMContext& context, Bytes bitcode,
                                                         const std::string& name, bool of_peer) {
    ROVE_CHECK(check_nesting(bitcode, name, of_peer));
    const std::string_view text = as_text(bitcode);
    auto module =
        llvm::parseBitcodeFile(llvm::MemoryBufferRef(llvm::StringRef(text.data(), text.size()), name), context);
    if (!module) return fail(ErrorCode::invalid, "{}: not bitcode: {}", name, llvm::toString(module.takeError()));
    ROVE_CHECK(check_nesting(**module, name));
    std::string why;
    llvm::raw_string_ostream out(why);
    if (llvm::verifyModule(**module, &out)) return fail(ErrorCode::invalid, "{}: broken bitcode: {}", name, why);
    return std::move(*module);
}

}  // namespace rove::code::jit
