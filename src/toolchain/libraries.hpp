// Which names a program's file defines, and which its shared libraries define.
//
// Threads: of() one at a time, because it runs the dynamic linker (process.hpp); a ProgramNames by any.
// Invariant: a ProgramNames never changes once it is made.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <unordered_set>

#include "package/libraries.hpp"

namespace rove::toolchain {

class ProgramNames {
public:
    // Reads the file and the libraries that it needs, whose places the dynamic linker reports; no code of theirs runs. A file that cannot be
    // found or read has no names.
    [[nodiscard]] static ProgramNames of(const std::filesystem::path& program);
    [[nodiscard]] const Libraries& libraries() const { return libraries_; }
    // Whether the program's own file defines the name, and this command's process, like that of every node, does not have it.
    [[nodiscard]] bool only_program_has(const std::string& name) const;
    // Whether it defines the name, and not weakly: such a definition replaces weak ones elsewhere.
    [[nodiscard]] bool is_strong(std::string_view name) const { return strong_.contains(std::string(name)); }

    // Whether its file has a definition of its own instead of a function of the C library. Code that travels and imports the name gets the
    // library's.
    [[nodiscard]] bool replaces_function_of_c(const std::string& name) const;

private:
    using Names = std::unordered_set<std::string>;
    ProgramNames(Libraries libraries, Names own, Names strong, bool is_static)
        : libraries_(std::move(libraries)), own_(std::move(own)), strong_(std::move(strong)), is_static_(is_static) {}
    Libraries libraries_;
    Names own_, strong_;
    bool is_static_;  // its file contains the C library
};

}  // namespace rove::toolchain
