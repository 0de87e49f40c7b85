// The shared libraries of a program, and which names come from them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.hpp"

namespace rove::toolchain {

// Threads: one at a time.
class Libraries {
public:
    // Those that the program's file asks for itself, but for those that every node has. Asks the dynamic linker where they are; nothing of them
    // runs. What cannot be found or read has no names.
    [[nodiscard]] static Libraries of_program(const std::filesystem::path& program);
    // The bare soname of the one that defines a name; empty: none does, or every node has it.
    [[nodiscard]] std::string with(const std::string& name) const;
    [[nodiscard]] std::vector<std::string> sonames() const;
    // Whether the program's own file defines it, and not every node has one, too.
    [[nodiscard]] bool only_program_has(const std::string& name) const;

private:
    std::map<std::string, std::unordered_set<std::string>> names_;  // by soname
    std::unordered_set<std::string> own_;
};

}  // namespace rove::toolchain
