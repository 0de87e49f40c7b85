#include "code/jit/assembly.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <string>

namespace rove::code::jit {
namespace {

// Directives that stand for no more than what is written.
constexpr llvm::StringLiteral kPlain[] = {
    "byte",      "2byte",          "4byte",  "8byte",      "short",        "hword",
    "value",     "word",           "int",    "long",       "quad",         "xword",
    "octa",      "float",          "single", "double",     "ascii",        "asciz",
    "string",    "string8",        "text",   "section",    "pushsection",  "popsection",
    "previous",  "globl",          "global", "local",      "weak",         "hidden",
    "protected", "internal",       "type",   "size",       "set",          "equ",
    "ident",     "file",           "loc",    "att_syntax", "intel_syntax", "code64",
    "arch",      "arch_extension", "cpu",    "inst",       "variant_pcs",
};
// These fill up to a multiple of what they name.
constexpr llvm::StringLiteral kAligning[] = {"align", "balign", "p2align"};
constexpr unsigned kAlignmentMax = 4096, kAlignmentBitsMax = 12;

// Whether a section is one that code writes to: an image has its statics elsewhere, and what assembly puts there is read only.
bool is_written(llvm::StringRef section) {
    const auto [name, rest] = section.split(',');
    const llvm::StringRef flags = rest.split(',').first.trim();
    const llvm::StringRef plain = name.trim().trim("\"");
    return plain.starts_with(".data") || plain.starts_with(".bss") || plain.starts_with(".tdata") ||
           plain.starts_with(".tbss") || (flags.starts_with("\"") && flags.contains('w'));
}

// Why a statement does not travel; empty: it does.
std::string why_not(llvm::StringRef statement) {
    statement = statement.trim();
    // Labels before it.
    for (std::size_t end = statement.find(':'); end != llvm::StringRef::npos; end = statement.find(':')) {
        if (statement.take_front(end).find_first_of(" \t\",(#") != llvm::StringRef::npos) break;
        statement = statement.drop_front(end + 1).ltrim();
    }
    // One way to write it for each dialect.
    if (statement.consume_front("$(")) {
        const auto [group, rest] = statement.split("$)");
        llvm::SmallVector<llvm::StringRef, 4> ways;
        group.split(ways, "$|");
        for (const llvm::StringRef way : ways)
            if (std::string why = why_not(way); !why.empty()) return why;
        return why_not(rest);
    }
    if (statement.starts_with("$")) return "a statement that begins with an operand";
    if (!statement.consume_front(".")) return {};
    const llvm::StringRef name = statement.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
    const llvm::StringRef argument = statement.drop_front(name.size()).trim();
    if (!name.empty() && argument.starts_with("=")) return {};
    const std::string lower = name.lower();
    const bool sets_place = (lower == "set" || lower == "equ") && argument.split(',').first.trim() == ".";
    if ((lower == "section" || lower == "pushsection") && is_written(argument)) return "a section that is written to";
    const bool is_plain =
        llvm::StringRef(lower).starts_with("cfi_") || llvm::is_contained(kPlain, llvm::StringRef(lower));
    if (is_plain && !sets_place) return {};
    if (llvm::is_contained(kAligning, llvm::StringRef(lower))) {
        unsigned number = 0;
        const unsigned most = lower == "p2align" ? kAlignmentBitsMax : kAlignmentMax;
        if (!argument.split(',').first.trim().getAsInteger(0, number) && number <= most) return {};
    }
    return "the directive ." + lower.substr(0, 32);
}

// Every place at which the assembler could begin a statement is looked at, those in strings and comments too: what is in there is not asked
// the same way in all dialects.
std::string why_not_all(llvm::StringRef text) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_of("\n\r;"), text.find("*/"));
        if (std::string why = why_not(text.take_front(end)); !why.empty()) return why;
        if (end >= text.size()) return {};
        text = text.drop_front(end + (text[end] == '*' ? 2 : 1));
    }
    return {};
}

}  // namespace

Status check_assembly(const llvm::Module& module) {
    if (const std::string why = why_not_all(module.getModuleInlineAsm()); !why.empty())
        return fail(ErrorCode::unsupported, "the assembly outside of its functions has {}, which does not travel", why);
    for (const llvm::Function& function : module)
        for (const llvm::BasicBlock& block : function)
            for (const llvm::Instruction& each : block) {
                const auto* call = llvm::dyn_cast<llvm::CallBase>(&each);
                const auto* assembly =
                    call != nullptr ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
                if (assembly == nullptr) continue;
                if (const std::string why = why_not_all(assembly->getAsmString()); !why.empty())
                    return fail(ErrorCode::unsupported,
                                "{} cannot be compiled: its assembly has {}, which does not travel; write out what it "
                                "stands for",
                                llvm::demangle(function.getName().str()), why);
            }
    return {};
}

}  // namespace rove::code::jit
