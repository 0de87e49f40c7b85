// The functions that this process's own program offers: compiled into it, enrolled before main() by the templates of
// rove/detail/offload.hpp, or built into Rove. One table for all nodes of the process.
//
// Threads: any, also in the child of a fork. The table has a lock of its own, under which nothing else is called.
//
// Invariants: an id means one function, and a function that was added keeps its address for as long as the process lives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "code/cache.hpp"

namespace rove {

struct Resident {
    FunctionId id;
    std::string name;       // for messages: "inner_product(…)"
    std::string signature;  // "double (std::span<double>, …)"
    std::uint32_t schema = 0;
    code::EntryPoint entry = nullptr;
    bool built_in = false;  // one of Rove's own
};

class Residents {
public:
    // Ends the process if another function has this id already, because calls could not distinguish them.
    static const Resident& add(Resident resident);
    [[nodiscard]] static const Resident* find(const FunctionId& id);
    [[nodiscard]] static const Resident* find(code::EntryPoint entry);
    // Whether this program has no functions of its own.
    [[nodiscard]] static bool none();
    [[nodiscard]] static std::vector<Resident> all();
};

}  // namespace rove
