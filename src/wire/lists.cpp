#include "wire/lists.hpp"

#include <algorithm>

namespace rove::wire {
namespace {

// Returns the text up to the next `end`, and removes both.
std::string_view take_until(std::string_view& rest, char end) {
    const std::size_t at = std::min(rest.find(end), rest.size());
    const std::string_view taken = rest.substr(0, at);
    rest.remove_prefix(std::min(at + 1, rest.size()));
    return taken;
}

}  // namespace

void append(std::string& list, const ListedFunction& function) {
    for (const std::string_view each : {function.id, function.name}) list.append(each) += '\t';
    list.append(function.signature) += '\n';
}

std::vector<ListedFunction> listed_functions(std::string_view list) {
    std::vector<ListedFunction> functions;
    while (!list.empty() && functions.size() < kListedFunctionsMax) {
        std::string_view line = take_until(list, '\n');
        ListedFunction& each = functions.emplace_back();
        each.id = take_until(line, '\t');
        each.name = take_until(line, '\t');
        each.signature = line;
    }
    return functions;
}

std::string text_of(const LoadedNames& names) {
    std::string text;
    for (const std::string& each : names.replaced) text += each + '\n';
    text += '\n';
    for (const std::string& each : names.kept) text += each + '\n';
    return text;
}

LoadedNames loaded_names(std::string_view text) {
    LoadedNames names;
    std::vector<std::string>* list = &names.replaced;
    while (text.find('\n') != std::string_view::npos) {  // of a long list the end was cut off
        const std::string_view line = take_until(text, '\n');
        if (line.empty())
            list = &names.kept;
        else
            list->emplace_back(line);
    }
    return names;
}

}  // namespace rove::wire
