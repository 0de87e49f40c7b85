// Options whose value is one word of a few.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>

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

}  // namespace rove::tools
