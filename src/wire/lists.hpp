// Answers that are lists, as text of one line for each element: which functions a node has, and what a load has changed (docs/frames.md).
//
// Threads: any. No state.
//
// What is read comes from a peer: any text is a list, and what is missing in a line is empty.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rove::wire {

// A line is these three, with tabs between.
struct ListedFunction {
    std::string_view id, name, signature;
};
void append(std::string& list, const ListedFunction& function);
// The first kListedFunctionsMax of them, twice what a node can know of packages: a hostile list may have more lines than there is memory for. The
// views are of `list`.
inline constexpr std::size_t kListedFunctionsMax = 2UL * 65536;
[[nodiscard]] std::vector<ListedFunction> listed_functions(std::string_view list);

// The lines of the first, an empty line, and those of the second.
struct LoadedNames {
    std::vector<std::string> replaced, kept;
};
[[nodiscard]] std::string text_of(const LoadedNames& names);
[[nodiscard]] LoadedNames loaded_names(std::string_view text);

}  // namespace rove::wire
