// Which shared library a name is from: what `rove bundle` and a program that takes its own functions out both ask.
//
// Threads: any.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"

namespace rove {

// Whether a library, by its soname, is one that every node's process has: no package needs to list it.
[[nodiscard]] bool is_on_every_node(std::string_view soname);

// Whether an address lies in a library that Rove itself is linked with and that is on no node for what arrives there: code that means such a
// library lists it, and what happens to have its names must not get it (a library of the program's own that stays at home, say).
[[nodiscard]] bool is_of_rove_alone(const void* address);

// Whether a library that every node has defines a name. Such a name is never another library's, although another one may have come first in this
// process (an allocator that it is linked with, whatever is preloaded): what libc allocates, a function gives back to libc.
[[nodiscard]] bool every_node_has(const std::string& name);

// The libraries that a program's file asks for itself, but for those that every node has.
class Libraries {
public:
    // Whether the library with that soname itself, and not one that it asks for in turn, defines a name.
    using Defines = std::function<bool(const std::string& soname, const std::string& name)>;
    // `needed`: the file's DT_NEEDED.
    Libraries(std::vector<std::string> needed, Defines defines);
    // Those of the running program.
    [[nodiscard]] static Libraries of_this_program();

    // The soname of the one that defines a name; empty: none does, or every node has the name.
    [[nodiscard]] std::string with(const std::string& name) const;
    // Those with these names, sorted, each once.
    [[nodiscard]] std::vector<std::string> with(const std::vector<std::string>& names) const;
    // A line for each, for PackageCache::key_of: a package made of the same bitcode lists other libraries where its program has others.
    [[nodiscard]] std::string lines() const;

private:
    std::vector<std::string> sonames_;  // sorted
    Defines defines_;
};

}  // namespace rove
