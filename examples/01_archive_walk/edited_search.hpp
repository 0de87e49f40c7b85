// The search with another score: one line edited in a copy of search.cpp, built as the build does it.
#pragma once

#include <filesystem>
#include <string_view>

#include "options.hpp"

namespace archive_walk {

// The line that is edited, and what it becomes.
inline constexpr std::string_view kScoreLine =
    "constexpr auto score = [](const Match& match) { return 1000 - 100 * match.errors - match.description_bytes; };";
inline constexpr std::string_view kScoreLineEdited =
    "constexpr auto score = [](const Match& match) { return 1000 - 100 * match.errors - match.installed_mib; };";

// Builds archive_search again, in a directory, and gives the program's path. Throws std::runtime_error where that cannot be
// done here, with the reason: there is no compiler, or no record of the build.
[[nodiscard]] std::filesystem::path build_edited_search(const Options& options, const std::filesystem::path& directory);

}  // namespace archive_walk
