#include "edited_search.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "processes.hpp"

namespace archive_walk {
namespace {

namespace fs = std::filesystem;

// The words of a command as a shell would see them: blanks separate, quotes and backslashes protect.
std::vector<std::string> words_of(std::string_view command) {
    std::vector<std::string> words;
    bool within = false;
    char quote = '\0';
    for (std::size_t i = 0; i < command.size(); ++i) {
        const char c = command[i];
        if (quote == '\0' && c == ' ') {
            within = false;
            continue;
        }
        if (!within) words.emplace_back();
        within = true;
        if (c == quote) {
            quote = '\0';
        } else if (quote == '\0' && (c == '"' || c == '\'')) {
            quote = c;
        } else if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
            words.back() += command[++i];
        } else {
            words.back() += c;
        }
    }
    return words;
}

// The compiler and its flags for this source in this build, without the names of files.
std::vector<std::string> compiler_and_flags(const fs::path& compile_commands, const fs::path& source) {
    std::ifstream file(compile_commands);
    if (!file)
        throw std::runtime_error(compile_commands.string() + ": cannot be read; it says how to build the search");
    for (const auto& entry : nlohmann::json::parse(file)) {
        if (entry.at("file") != source.string()) continue;
        std::vector<std::string> kept;
        const auto words = words_of(entry.at("command").get<std::string>());
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (words[i] == "-o" || words[i] == "-c")
                ++i;  // and the file that follows
            else
                kept.push_back(words[i]);
        }
        if (!kept.empty()) return kept;
    }
    throw std::runtime_error(
        fmt::format("{} does not say how {} is compiled", compile_commands.string(), source.string()));
}

}  // namespace

fs::path build_edited_search(const Options& options, const fs::path& directory) {
    const fs::path source = ARCHIVE_SEARCH_SOURCE;
    std::stringstream read;
    read << std::ifstream(source).rdbuf();
    std::string text = read.str();
    const std::size_t line = text.find(kScoreLine);
    if (line == std::string::npos)
        throw std::runtime_error(fmt::format("{} has no line: {}", source.string(), kScoreLine));
    text.replace(line, kScoreLine.size(), kScoreLineEdited);
    const fs::path edited = directory / source.filename();
    std::ofstream(edited) << text;

    const fs::path program = directory / "archive_search";
    std::vector<std::string> command = compiler_and_flags(options.compile_commands, source);
    command.insert(command.end(),
                   {edited, "-I", source.parent_path(), "-o", program, ARCHIVE_SEARCH_PARTS, ARCHIVE_SEARCH_LIBROVE,
                    "-Wl,-z,now", "-Wl,-rpath," + fs::path(ARCHIVE_SEARCH_LIBROVE).parent_path().string()});
    (void)output_of(command);
    (void)output_of({options.rove, "bundle", program});
    return program;
}

}  // namespace archive_walk
