// Which names a program's file defines, and which its shared libraries.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <unordered_set>

#include "package/libraries.hpp"

namespace rove::toolchain {

class ProgramNames {
public:
    // Reads the file and the libraries that it asks for, asking the dynamic linker where they are; nothing of them runs. What cannot be
    // found or read has no names.
    [[nodiscard]] static ProgramNames of(const std::filesystem::path& program);
    [[nodiscard]] const Libraries& libraries() const { return libraries_; }
    // Whether the program's own file defines it, and this command's process, as that of every node, has no such name.
    [[nodiscard]] bool only_program_has(const std::string& name) const;

private:
    ProgramNames(Libraries libraries, std::unordered_set<std::string> own)
        : libraries_(std::move(libraries)), own_(std::move(own)) {}
    Libraries libraries_;
    std::unordered_set<std::string> own_;
};

}  // namespace rove::toolchain
