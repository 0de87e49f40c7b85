#include "bitcode/assembly.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <bit>
#include <string>

#include "wire/image.hpp"

namespace rove::bitcode {
namespace {

// Directives that generate no more than what is written.
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
// Statements between these are checked, whether they will be assembled or not. .ifdef and .ifndef are refused: functions and variables have
// other names in a package, so these two would silently choose the other branch there.
constexpr llvm::StringLiteral kConditional[] = {"if",   "ifeq", "ifne", "ifge",  "ifgt",  "ifle",   "iflt", "ifb",
                                                "ifnb", "ifc",  "ifnc", "ifeqs", "ifnes", "elseif", "else", "endif"};
// These directives fill up to a multiple of their argument.
constexpr llvm::StringLiteral kAligning[] = {"align", "balign", "p2align"};
constexpr auto kAlignmentBitsMax = static_cast<unsigned>(std::countr_zero(wire::kAlignmentMax));

bool starts_with_any(llvm::StringRef name, std::initializer_list<llvm::StringRef> beginnings) {
    return llvm::any_of(beginnings, [name](llvm::StringRef each) { return name.starts_with(each); });
}

// Why a section does not travel; empty: it does. An image has its statics elsewhere, so anything that assembly puts into .data would be
// read-only; and the unwinder trusts its tables, whatever code they describe.
std::string why_not_section(llvm::StringRef section) {
    const auto [name, rest] = section.split(',');
    const llvm::StringRef plain = name.trim().trim("\"");
    llvm::StringRef flags = rest.split(',').first.trim();
    if (plain.contains('$')) return "a section whose name is put together";
    if (starts_with_any(plain, {".eh_frame", ".gcc_except_table"})) return "a section of unwind tables";
    const bool are_letters =
        flags.empty() || (flags.consume_front("\"") && flags.consume_back("\"") &&
                          llvm::all_of(flags, [](char c) { return llvm::isAlpha(c) || c == '?'; }));
    if (!are_letters) return "a section whose flags are no letters";
    // A type may be given by its number: a table of relocations, for example, which the linker would trust.
    const llvm::StringRef type = rest.split(',').second.split(',').first.trim().trim('"').ltrim("@%");
    if (!type.empty() && type != "progbits" && type != "nobits" && type != "note")
        return "a section of a type of its own";
    const bool is_written = starts_with_any(plain, {".data", ".bss", ".tdata", ".tbss"}) || flags.contains('w');
    return is_written ? "a section that is written to" : "";
}

bool begins_dialect(llvm::StringRef text) {
    return starts_with_any(text, {"$(", "$|", "$)"});
}

// Why a statement that begins here does not travel; empty: it does. LLVM reads text in quotes as a name, also as a directive's.
std::string why_not_here(llvm::StringRef statement) {
    statement = statement.ltrim();
    const bool is_quoted = statement.consume_front("\"");
    if (is_quoted && statement.split('"').first.contains('$')) return "a statement that begins with an operand";
    if (!statement.consume_front(".")) return {};
    const llvm::StringRef name = statement.take_while(
        [is_quoted](char c) { return is_quoted ? c != '"' : llvm::isAlnum(c) || c == '_' || c == '.'; });
    llvm::StringRef after = statement.drop_front(name.size());
    if (is_quoted) (void)after.consume_front("\"");
    const llvm::StringRef argument = after.trim();
    if (!name.empty() && (argument.starts_with("=") || argument.starts_with(":"))) return {};  // a symbol, a label
    if (after.starts_with("$")) return "a directive whose name is put together";
    const std::string lower = name.lower();
    const bool sets = lower == "set" || lower == "equ";
    if (sets && argument.contains('$')) return "a name that is put together";
    const bool sets_place = sets && argument.split(',').first.trim().trim('"') == ".";
    if (lower == "section" || lower == "pushsection") {
        if (std::string why = why_not_section(argument); !why.empty()) return why;
    }
    const bool is_plain = llvm::StringRef(lower).starts_with("cfi_") ||
                          llvm::is_contained(kPlain, llvm::StringRef(lower)) ||
                          llvm::is_contained(kConditional, llvm::StringRef(lower));
    if (is_plain && !sets_place) return {};
    if (llvm::is_contained(kAligning, llvm::StringRef(lower))) {
        unsigned number = 0;
        const unsigned most = lower == "p2align" ? kAlignmentBitsMax : wire::kAlignmentMax;
        if (!argument.split(',').first.trim().getAsInteger(0, number) && number <= most) return {};
    }
    return "the directive ." + lower.substr(0, 32);
}

// A local name (.Lhere), as a label or as an operand, and not a directive, whose names are read in either case (.Lcomm).
bool is_local_name(llvm::StringRef text) {
    const std::string lower = text.take_front(16).lower();
    return text.starts_with(".L") && !starts_with_any(lower, {".lcomm", ".lsym", ".link", ".lto", ".lflags"});
}

// Whether a statement may begin after this: after nothing, after a label, and after each of the ways to write one for a dialect
// ("$(way$|other$)"). If it is not a label, there is an operand before its colon (%fs:$0; x0, :lo12:$1).
bool may_end_before_statement(llvm::StringRef before) {
    before = before.rtrim();
    if (before.consume_back("$|")) return may_end_before_statement(before.take_front(before.rfind("$(")));
    if (before.consume_back("$)")) return may_end_before_statement(before.take_front(before.rfind("$(")));
    if (before.consume_back("$(")) return may_end_before_statement(before);
    return before.empty() ||
           (before.ends_with(":") && (before.contains('"') || before.find_first_of("%,") == llvm::StringRef::npos));
}

std::string why_not(llvm::StringRef statement) {
    statement = statement.trim();
    for (std::size_t begin = 0; begin <= statement.size(); ++begin) {
        const llvm::StringRef before = statement.take_front(begin);
        const bool follows =
            begin == 0 || before.ends_with(":") || starts_with_any(before.take_back(2), {"$(", "$|", "$)"});
        if (!follows) continue;
        const llvm::StringRef rest = statement.drop_front(begin).ltrim();
        if (rest.starts_with("$") && !begins_dialect(rest) && may_end_before_statement(before))
            return "a statement that begins with an operand";
        if (is_local_name(rest)) continue;
        if (std::string why = why_not_here(rest); !why.empty()) return why;
    }
    return {};
}

// Every place at which the assembler could begin a statement is checked, including those in strings and comments, because the dialects
// delimit these differently.
std::string why_not_all(llvm::StringRef text) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_of("\n\r;"), text.find("*/"));
        if (std::string why = why_not(text.take_front(end)); !why.empty()) return why;
        if (end >= text.size()) return {};
        text = text.drop_front(end + (text[end] == '*' ? 2 : 1));
    }
    return {};
}

// LLVM prints a name in quotes at best, and escapes only some of the characters that end them. A name within a comment or a string can end
// that, too, and the assembler reads the rest as statements. Letters of other alphabets end nothing.
bool is_one_word(llvm::StringRef name) {
    name.consume_front("\1");  // marks a name that LLVM prints unchanged
    return llvm::all_of(name, [](char c) {
        return llvm::isAlnum(c) || llvm::StringRef("_.$@").contains(c) || static_cast<unsigned char>(c) >= 0x80;
    });
}

// The text that LLVM prints for an operand is not checked above. It may be any name in the module, whatever the operand is here, because
// the code generator may determine that a pointer is the address of a certain variable.
Status check_names(const llvm::Module& module, const llvm::Function& function) {
    const auto values = module.global_values();
    const auto found =
        std::find_if(values.begin(), values.end(), [](const auto& each) { return !is_one_word(each.getName()); });
    if (found == values.end()) return {};
    constexpr std::size_t kShownMax = 40;
    std::string shown;
    llvm::raw_string_ostream out(shown);
    llvm::printEscapedString((*found).getName().take_front(kShownMax), out);
    return fail(ErrorCode::unsupported,
                "{} cannot be compiled: its assembly has operands, and '{}' is a name that cannot be printed into "
                "assembly; give it a name of letters, digits and _",
                llvm::demangle(function.getName().str()), out.str());
}

}  // namespace

Status check_assembly(const llvm::Module& module) {
    if (const std::string why = why_not_all(module.getModuleInlineAsm()); !why.empty())
        return fail(ErrorCode::unsupported, "the assembly outside of its functions has {}, which does not travel", why);
    const llvm::Function* has_operands = nullptr;
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
                if (llvm::StringRef(assembly->getAsmString()).contains('$')) has_operands = &function;
            }
    if (has_operands != nullptr) return check_names(module, *has_operands);
    return {};
}

}  // namespace rove::bitcode
