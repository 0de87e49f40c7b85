// Reads bitcode that is not trusted: LLVM's reader and verifier accept or refuse it, and LLVM's diagnostics become errors.
//
// Threads: one at a time for each LLVM context. Invariant: a FewWords never makes its text longer than kMax.
#pragma once

#include <llvm/ADT/SmallString.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "bitcode/nesting.hpp"

namespace rove::bitcode {

// Keeps only the beginning of a long message: a peer's module may be wrong in a million places, and each failing call reports the message.
class FewWords final : public llvm::raw_ostream {
public:
    explicit FewWords(std::string& into) : llvm::raw_ostream(true), into_(into) {}

private:
    void write_impl(const char* words, std::size_t size) override {
        into_.append(words, std::min(size, kMax - std::min(into_.size(), kMax)));
    }
    [[nodiscard]] std::uint64_t current_pos() const override { return into_.size(); }

    static constexpr std::size_t kMax = 600;
    std::string& into_;
};

// Writes an error as LLVM does, with two exceptions for inline assembly. LLVM adds "at line N", where N counts characters. And an operand that is
// an address is a constant for a program's compiler, but not for a package's, whose variables have their addresses when it is loaded.
inline void write_words(const llvm::DiagnosticInfo& info, llvm::raw_ostream& out) {
    const auto* const assembly = llvm::dyn_cast<llvm::DiagnosticInfoInlineAsm>(&info);
    if (assembly == nullptr) {
        llvm::DiagnosticPrinterRawOStream printer(out);
        info.print(printer);
        return;
    }
    llvm::SmallString<100> room;
    const llvm::StringRef words = assembly->getMsgStr().toStringRef(room);
    out << words;
    if (words.contains("constraint 'i'") || words.contains("constraint 's'"))
        out << ": an address is no constant in code that travels; give the assembly the variable as \"m\", or its "
               "address as \"r\"";
}

// Collects the errors of one context: without a handler LLVM prints an error and calls exit(). Names of values within functions are not
// kept, because nothing reads them.
inline void set_up(llvm::LLVMContext& context, std::string& errors) {
    context.setDiscardValueNames(true);
    context.setDiagnosticHandlerCallBack(
        [](const llvm::DiagnosticInfo* info, void* into) {
            if (info->getSeverity() != llvm::DS_Error) return;
            auto& text = *static_cast<std::string*>(into);
            FewWords out(text);
            if (!text.empty()) out << "; ";
            write_words(*info, out);
        },
        &errors);
}

// of_peer: another node has sent it, and not a compiler here.
inline Result<std::unique_ptr<llvm::Module>> read_module(llvm::LLVMContext& context, Bytes bitcode,
                                                         const std::string& name, bool of_peer) {
    ROVE_CHECK(check_nesting(bitcode, name, of_peer));
    const std::string_view text = as_text(bitcode);
    auto module =
        llvm::parseBitcodeFile(llvm::MemoryBufferRef(llvm::StringRef(text.data(), text.size()), name), context);
    if (!module) return fail(ErrorCode::invalid, "{}: not bitcode: {}", name, llvm::toString(module.takeError()));
    ROVE_CHECK(check_nesting(**module, name));
    std::string why;
    FewWords out(why);
    if (llvm::verifyModule(**module, &out)) return fail(ErrorCode::invalid, "{}: broken bitcode: {}", name, why);
    return std::move(*module);
}

}  // namespace rove::bitcode
