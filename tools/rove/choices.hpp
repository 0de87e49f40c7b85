// Options that several verbs have, and those whose value is one word of a few.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <map>
#include <string>

#include "node/options.hpp"

namespace rove::tools {

// Takes one of the words, and makes of it the number that it stands for. CLI11's own transformer lists the words badly.
template <typename T>
CLI::Validator one_of(const std::map<std::string, T>& words) {
    return {[words](std::string& text) {
                if (const auto found = words.find(text); found != words.end()) {
                    text = std::to_string(static_cast<int>(found->second));
                    return std::string();
                }
                std::string all;
                for (const auto& [word, value] : words) all += (all.empty() ? "" : ", ") + word;
                return fmt::format("'{}' is none of {}", text, all);
            },
            ""};
}

// For a number of seconds: nan passes every check of a range.
inline const CLI::Validator kNoNan(
    [](const std::string& text) -> std::string {
        double seconds = 0;
        return CLI::detail::lexical_cast(text, seconds) && std::isnan(seconds) ? "nan is no number of seconds" : "";
    },
    "");

inline const std::map<std::string, Forms> kForms{
    {"both", Forms::both}, {"image", Forms::image}, {"bitcode", Forms::bitcode}};

// How a node reaches others, and by what it is let in.
inline void add_reach(CLI::App& command, NodeOptions& options) {
    std::map<std::string, FabricChoice> fabrics;
    std::string help;
    for (const FabricWord& each : kFabricWords) {
        fabrics.emplace(each.word, each.choice);
        help += fmt::format("{}{}: {}", help.empty() ? "" : "; ", each.word, each.help);
    }
    command.add_option("--fabric", options.fabric, help)
        ->transform(one_of(fabrics))
        ->option_text(fmt::format("{}", fmt::join(fabric_words(), "|")));
    command.add_option(
        "--cookie", options.cookie,
        "the file that proves the user on loopback TCP (default: $ROVE_COOKIE, else ~/.config/rove/cookie)");
}
// How a client does: what a node has not made lets nobody in, so a name of no file is a mistyped one.
inline void add_client_reach(CLI::App& command, NodeOptions& options) {
    add_reach(command, options);
    command.get_option("--cookie")->check(CLI::ExistingFile);
}

}  // namespace rove::tools
