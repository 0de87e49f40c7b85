// A module's bitcode, function by function.
#pragma once

#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"

namespace rove::bitcode {

// What a function's body is read as depends on its own bytes, which refer to the module's tables by numbers, and on these tables. So a function whose
// bytes are as they were, in surroundings that are as they were, has not changed.
struct Outline {
    Digest surroundings;         // all of the module but the bodies
    std::vector<Digest> bodies;  // in the module's order of functions
};

// Nothing: it is not in the form in which LLVM 19 writes modules.
[[nodiscard]] std::optional<Outline> outline_of(Bytes module);

}  // namespace rove::bitcode
