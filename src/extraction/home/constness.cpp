#include "extraction/home/constness.hpp"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BuildLibCalls.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace rove::bitcode {
namespace {

// Whether a function with a C name only reads what this argument points to. LLVM knows the functions of the C library.
bool reads_only(const llvm::Function& function, const llvm::CallBase& call, unsigned argument) {
    if (function.isVarArg() && argument >= function.arg_size()) return !function.getName().contains("scanf");
    const llvm::TargetLibraryInfoImpl libraries(llvm::Triple(function.getParent()->getTargetTriple()));
    if (function.isDeclaration())
        (void)llvm::inferNonMandatoryLibFuncAttrs(const_cast<llvm::Function&>(function),
                                                  llvm::TargetLibraryInfo(libraries));
    if (argument == 0 && function.getName() == "fwrite") return true;  // LLVM does not know this one
    return call.onlyReadsMemory(argument) || call.onlyReadsMemory();
}

// The types in "(int, std::vector<int, std::allocator<int>>&)".
std::vector<std::string> types_in(const std::string& parameters) {
    std::vector<std::string> types(1);
    int depth = 0;
    for (std::size_t i = 1; i + 1 < parameters.size(); ++i) {
        const char c = parameters[i];
        if (c == '<' || c == '(') ++depth;
        if (c == '>' || c == ')') --depth;
        if (c == ',' && depth == 0)
            types.emplace_back();
        else
            types.back() += c;
    }
    for (std::string& type : types) type = llvm::StringRef(type).trim().str();
    if (types.back().empty()) types.pop_back();
    return types;
}

// A class passed as a size and a pointer to const.
bool is_string_view(llvm::StringRef type) {
    return type.starts_with("std::basic_string_view<") && type.ends_with(">");
}

bool is_pointer(llvm::StringRef type) {
    return type.ends_with("&") || type.ends_with("*");
}

// Whether a type is one IR argument on every platform; a class may be none, one or two.
bool is_one_argument(llvm::StringRef type) {
    static constexpr const char* kOthers[] = {
        "bool",         "char", "signed char",   "unsigned char", "short",  "unsigned short", "int",
        "unsigned int", "long", "unsigned long", "float",         "double", "long long",      "unsigned long long"};
    return is_pointer(type) || std::ranges::any_of(kOthers, [&](const char* other) { return type == other; });
}

// The number of IR arguments in which a value of this type is passed; 0: unknown.
std::size_t width_of(llvm::StringRef type) {
    if (is_string_view(type)) return 2;
    return is_one_argument(type) ? 1 : 0;
}

unsigned depth_of(llvm::StringRef type) {
    if (is_string_view(type)) return 1;
    unsigned depth = 0;
    while (is_pointer(type)) {
        while (is_pointer(type) && type.back() == '&') type = type.drop_back();
        if (type.ends_with("*")) type = type.drop_back();
        if (!type.consume_back(" const")) return 0;
        ++depth;
    }
    return depth;
}

// The type of the argument, if that is certain. The object, if there is one, has been removed.
std::optional<std::size_t> type_of(const std::vector<std::string>& types, std::size_t arguments, std::size_t argument) {
    for (std::size_t i = 0, at = 0; i < types.size() && width_of(types[i]) > 0; at += width_of(types[i++]))
        if (argument < at + width_of(types[i])) return i;
    for (std::size_t i = types.size(), at = arguments; i-- > 0 && width_of(types[i]) > 0 && width_of(types[i]) <= at;) {
        at -= width_of(types[i]);
        if (argument >= at) return i;
    }
    if (types.size() == arguments) return argument;
    return std::nullopt;
}

// The steps of libstdc++'s iterators of trees, also for trees that are not const.
bool is_step_of_tree(llvm::StringRef mangled) {
    return mangled.starts_with("_ZSt18_Rb_tree_increment") || mangled.starts_with("_ZSt18_Rb_tree_decrement");
}

// rove's own writer of arguments: the memory that it grows contains bytes that it has copied.
bool writes_arguments(llvm::StringRef mangled) {
    return mangled.starts_with("_ZN4rove6detail6travel6Output");
}

// libstdc++'s functions that match a regular expression. Their matcher holds a reference to the expression, which it only reads, among many
// references to things that it changes, and the analysis cannot distinguish these.
bool matches_expression(llvm::StringRef mangled) {
    return mangled.starts_with("_ZSt11regex_match") || mangled.starts_with("_ZSt12regex_search") ||
           mangled.starts_with("_ZSt13regex_replace") || mangled.starts_with("_ZNSt7__cxx1114regex_iterator") ||
           mangled.starts_with("_ZNSt7__cxx1120regex_token_iterator") ||
           mangled.starts_with("_ZNSt8__detail17__regex_algo_impl");
}

unsigned constness_of(const llvm::Function& function, const llvm::CallBase& call, std::size_t argument) {
    const std::string mangled = function.getName().str();
    if (is_step_of_tree(mangled)) return 1;
    llvm::ItaniumPartialDemangler demangler;
    if (demangler.partialDemangle(mangled.c_str()))
        return reads_only(function, call, static_cast<unsigned>(argument)) ? 1 : 0;
    const std::size_t results = call.hasStructRetAttr() ? 1 : 0;
    if (argument < results) return 0;
    argument -= results;
    const std::size_t arguments = call.arg_size() - results;
    char* const text = demangler.getFunctionParameters(nullptr, nullptr);
    const std::vector<std::string> types = types_in(text != nullptr ? text : "");
    std::free(text);

    const bool is_const_member = llvm::StringRef(mangled).starts_with("_ZNK");
    const bool may_be_object = call.getParamDereferenceableBytes(static_cast<unsigned>(results)) > 0;
    const bool is_object = is_const_member || demangler.isCtorOrDtor() ||
                           (may_be_object && (types.empty() || !llvm::StringRef(types[0]).ends_with("&")));
    const auto without = [&](std::size_t objects) -> unsigned {
        if (argument < objects) return is_const_member ? 1 : 0;
        const std::optional<std::size_t> type = type_of(types, arguments - objects, argument - objects);
        const unsigned depth = type ? depth_of(types[*type]) : 0;
        return depth > 0 && (matches_expression(mangled) || writes_arguments(mangled)) ? Constness::kAll : depth;
    };
    if (is_object) return without(1);
    if (!may_be_object || arguments == types.size()) return without(0);
    const bool all_are_one = std::ranges::all_of(types, [](const std::string& type) { return is_one_argument(type); });
    return all_are_one ? without(1) : std::min(without(0), without(1));
}

}  // namespace

bool Constness::may_give_back(const llvm::Function& callee, unsigned argument) {
    const llvm::StringRef name = callee.getName();
    for (const llvm::StringRef gives_stream : {"_ZStls", "_ZStrs", "_ZSt16__ostream_insert", "_ZSt7getline"})
        if (name.starts_with(gives_stream)) return argument == 0;
    if (name.starts_with("_Z")) return true;
    const bool searches =
        name.starts_with("str") || name.starts_with("mem") || name.starts_with("wcs") || name.starts_with("wmem");
    return (searches && !name.ends_with("dup")) || name == "bsearch" || name == "basename" || name == "dirname";
}

unsigned Constness::of(const llvm::Function& callee, const llvm::CallBase& call, unsigned argument) {
    const auto [known, is_new] = known_.try_emplace(&call.getArgOperandUse(argument), 0);
    if (is_new) known->second = constness_of(callee, call, argument);
    return known->second;
}

}  // namespace rove::bitcode
