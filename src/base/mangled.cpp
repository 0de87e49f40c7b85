#include "base/mangled.hpp"

#include <cstddef>

namespace rove {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// The first place after the digits that begin at `at`.
std::size_t behind_digits(std::string_view mangled, std::size_t at) {
    while (at < mangled.size() && is_digit(mangled[at])) ++at;
    return at;
}

// '\0' beyond its end.
char letter(std::string_view mangled, std::size_t at) {
    return at < mangled.size() ? mangled[at] : '\0';
}

// The end of the name that begins at `at` with its length ("3foo"); `at` if there is none. Other numbers are followed by a terminator:
// "E" after a literal's value, "_" after an index. A name may begin with these letters as well. After an "E" both are possible; then it does
// not count as a name, and its letters are examined one by one.
std::size_t behind_name(std::string_view mangled, std::size_t at) {
    const std::size_t text = behind_digits(mangled, at);
    if (text == at || text == mangled.size() || mangled[at] == '0') return at;
    if (at > 0 && mangled[at - 1] == 'E' && (mangled[text] == 'E' || mangled[text] == '_')) return at;
    std::size_t length = 0;
    for (std::size_t i = at; i < text && length < mangled.size(); ++i)
        length = 10 * length + static_cast<std::size_t>(mangled[i] - '0');
    return length <= mangled.size() - text ? text + length : at;
}

// The end of a literal of a built-in type ("Li3E"), or of an enumeration, whose name precedes the value ("L5Color1E"). `at` if none begins
// there.
std::size_t behind_literal(std::string_view mangled, std::size_t at) {
    const char type = letter(mangled, at + 1);
    if (type >= 'a' && type <= 'z') {
        const std::size_t end = mangled.find('E', at);
        return end == std::string_view::npos ? at : end + 1;
    }
    const std::size_t enumeration = behind_name(mangled, at + 1);
    const std::size_t value = enumeration + (letter(mangled, enumeration) == 'n' ? 1 : 0);  // "n": below zero
    const std::size_t end = behind_digits(mangled, value);
    return enumeration > at + 1 && end > value && letter(mangled, end) == 'E' ? end + 1 : at;
}

// The end of a substitution ("S1_"), a template's parameter ("T0_"), or an array's bound ("A10_"). `at` if none of them begins there.
std::size_t behind_index(std::string_view mangled, std::size_t at) {
    std::size_t end = at + 1;
    while (is_digit(letter(mangled, end)) || (letter(mangled, end) >= 'A' && letter(mangled, end) <= 'Z')) ++end;
    return letter(mangled, end) == '_' ? end + 1 : at;
}

// The end of an element that may contain digits and is not a name. `at` if none begins there.
std::size_t behind_number(std::string_view mangled, std::size_t at) {
    switch (mangled[at]) {
        case 'S':
        case 'T':
        case 'A': return behind_index(mangled, at);
        case 'L': return behind_literal(mangled, at);
        case '_':
            return is_digit(letter(mangled, at + 1)) ? behind_digits(mangled, at + 1)
                                                     : at;  // distinguishes equal names
        default: return at;
    }
}

// Whether `found` holds at a place that is not within a name.
template <typename Found>
bool finds(std::string_view mangled, const Found& found) {
    for (std::size_t at = 0; at < mangled.size();) {
        std::size_t end = behind_name(mangled, at);
        if (end == at) end = behind_number(mangled, at);
        if (end == at && found(at)) return true;
        at = end == at ? at + 1 : end;
    }
    return false;
}

constexpr std::string_view kOffload = "_ZN4rove6detail7OffloadI";
constexpr std::string_view kRun = "E3runEP9rove_herePKvm";

}  // namespace

std::string symbol_of_offload(std::string_view type) {
    const std::string_view arguments = type.ends_with("EE") ? type.substr(0, type.size() - 2) : type;
    return std::string("_Z").append(arguments).append(kRun);
}

bool names_offload(std::string_view mangled) {
    return mangled.starts_with(kOffload) && mangled.find(kRun) != std::string_view::npos;
}

bool names_a_lambda(std::string_view mangled) {
    if (mangled.find("$_") != std::string_view::npos) return true;
    return finds(mangled, [mangled](std::size_t at) { return mangled.substr(at, 2) == "Ul"; });
}

// Checks for an "L" before a name that is not a literal's type.
bool names_internal(std::string_view mangled) {
    if (mangled.find("_GLOBAL__N_") != std::string_view::npos) return true;
    return finds(mangled,
                 [mangled](std::size_t at) { return mangled[at] == 'L' && behind_name(mangled, at + 1) > at + 1; });
}

}  // namespace rove
