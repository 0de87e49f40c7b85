// Finds the shared library that defines a name, for `rove bundle` and for programs that extract their own functions.
//
// Threads: any.
//
// Invariant: nothing is opened here that the process had not loaded already.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"

namespace rove {

// Whether a library, by its soname, is one that every node's process has: no package needs to list it.
[[nodiscard]] bool is_on_every_node(std::string_view soname);

// Whether an address is in a library that Rove itself is linked with and that is not visible to packages. A package that uses such a library
// lists it. Other code that needs the same names must not get them from it, because they may mean a library that stayed with the program.
[[nodiscard]] bool is_of_rove_alone(const void* address);

// Whether a library that every node has defines a name. Such a name never counts as another library's, although another library may precede
// it in this process (an allocator, or a preloaded library), because memory that libc allocates must be returned to libc.
[[nodiscard]] bool every_node_has(const std::string& name);

// Whether the C library, or its library of mathematics, has a function of that name.
[[nodiscard]] bool is_function_of_c(const std::string& name);

// The libraries that a program's file needs directly, except those that every node has.
class Libraries {
public:
    // Whether the library with that soname defines a name itself; its own dependencies do not count.
    using Defines = std::function<bool(const std::string& soname, const std::string& name)>;
    // `needed`: the file's DT_NEEDED.
    Libraries(std::vector<std::string> needed, Defines defines);
    // The libraries of the running program.
    [[nodiscard]] static Libraries of_this_program();

    // The soname of the library that defines a name; empty: none does, or every node has the name.
    [[nodiscard]] std::string with(const std::string& name) const;
    // The libraries that define these names, sorted, each once.
    [[nodiscard]] std::vector<std::string> with(const std::vector<std::string>& names) const;
    // A line for each, for PackageCache::key_of, because packages of the same bitcode list other libraries if their programs have others.
    [[nodiscard]] std::string lines() const;

private:
    std::vector<std::string> sonames_;  // sorted
    Defines defines_;
};

}  // namespace rove
