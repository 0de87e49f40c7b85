#include "base/mangled.hpp"

#include <cstddef>

namespace rove {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// The first place behind the digits that begin at `at`.
std::size_t behind_digits(std::string_view mangled, std::size_t at) {
    while (at < mangled.size() && is_digit(mangled[at])) ++at;
    return at;
}

// Where a name ends that begins at `at` with its length ("3foo"); `at` where none does. Other numbers are followed by what ends them: "E"
// behind a literal's value, "_" behind an index. (A name may begin so, too. One of those is looked into, and no letter of it is skipped.)
std::size_t behind_name(std::string_view mangled, std::size_t at) {
    const std::size_t text = behind_digits(mangled, at);
    if (text == at || text == mangled.size() || mangled[at] == '0') return at;
    if (at > 0 && mangled[at - 1] == 'E' && (mangled[text] == 'E' || mangled[text] == '_')) return at;
    std::size_t length = 0;
    for (std::size_t i = at; i < text && length < mangled.size(); ++i)
        length = 10 * length + static_cast<std::size_t>(mangled[i] - '0');
    return length <= mangled.size() - text ? text + length : at;
}

// What is behind something that begins at `at` and is no name, but may have digits in it: a substitution ("S1_"), a template's parameter
// ("T0_"), an array's bound ("A10_"), a literal ("Li3E"), a discriminator ("_1"). `at` where it is none of these.
std::size_t behind_number(std::string_view mangled, std::size_t at) {
    const auto is = [&](std::size_t i, auto what) { return i < mangled.size() && what(mangled[i]); };
    const auto digit = [](char c) { return is_digit(c); };
    switch (mangled[at]) {
        case 'S':
        case 'T':
        case 'A': {
            std::size_t end = at + 1;
            while (is(end, [](char c) { return is_digit(c) || (c >= 'A' && c <= 'Z'); })) ++end;
            return is(end, [](char c) { return c == '_'; }) ? end + 1 : at;
        }
        case 'L': {
            if (is(at + 1, [](char c) { return c >= 'a' && c <= 'z'; })) {
                const std::size_t end = mangled.find('E', at);
                return end == std::string_view::npos ? at : end + 1;
            }
            std::size_t value = behind_name(mangled, at + 1);  // of an enumeration's type: "L5Color1E"
            if (is(value, [](char c) { return c == 'n'; })) ++value;
            const std::size_t end = behind_digits(mangled, value);
            return value > at + 1 && end > value && is(end, [](char c) { return c == 'E'; }) ? end + 1 : at;
        }
        case '_': return is(at + 1, digit) ? behind_digits(mangled, at + 1) : at;
        default: return at;
    }
}

// Whether `found` says so of a place that is not within the text of a name.
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

}  // namespace

bool names_a_lambda(std::string_view mangled) {
    if (mangled.find("$_") != std::string_view::npos) return true;
    return finds(mangled, [mangled](std::size_t at) {
        if (mangled.substr(at, 2) != "Ul") return false;
        const std::size_t parameters_end = mangled.find('E', at);
        if (parameters_end == std::string_view::npos) return false;
        const std::size_t end = behind_digits(mangled, parameters_end + 1);
        return end < mangled.size() && mangled[end] == '_';
    });
}

// "L" before a name, where that is not a literal's type.
bool names_internal(std::string_view mangled) {
    if (mangled.find("_GLOBAL__N_") != std::string_view::npos) return true;
    return finds(mangled,
                 [mangled](std::size_t at) { return mangled[at] == 'L' && behind_name(mangled, at + 1) > at + 1; });
}

}  // namespace rove
