// What the demo is asked to do.
#pragma once

#include <filesystem>
#include <string>

namespace archive_walk {

struct Options {
    std::string package = "gnome";         // where the walk starts
    std::string pattern = "vidoe editor";  // what the search looks for
    std::string archive;                   // a file, "-", or empty: what apt knows
    std::string architecture;              // empty: this machine's
    unsigned nodes = 4;
    unsigned runs = 15;  // of everything that is measured
    bool json = false;
    std::filesystem::path rove;              // the command
    std::filesystem::path search;            // the program archive_search
    std::filesystem::path packages;          // where shard.rove, fill.rove, walk.rove and list.rove are
    std::filesystem::path compile_commands;  // how the build compiles search.cpp
};

}  // namespace archive_walk
