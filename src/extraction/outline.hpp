// A module's bitcode, function by function.
#pragma once

#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"

namespace rove::bitcode {

// The meaning of a function's body depends on its own bytes, which refer to the module's tables by numbers, and on these tables. So a function
// is unchanged if neither its bytes nor its surroundings have changed.
struct Outline {
    Digest surroundings;         // all of the module except the bodies
    std::vector<Digest> bodies;  // in the module's order of functions
};

// Nothing: it is not in the form in which LLVM 19 writes modules.
[[nodiscard]] std::optional<Outline> outline_of(Bytes module);

}  // namespace rove::bitcode
