// Functions that every node has: peers call them, as resident functions, by ids that are the same in all processes.
// docs/frames.md, "Functions that every node has", has what they take and give, byte by byte.
//
// Threads: any. Invariant: the ids are made of names, and are the same in all processes.
#pragma once

#include "base/ids.hpp"

namespace rove {

struct BuiltIns {
    FunctionId allocate, free, mapped, put, get, copy;  // memory (services/memory.hpp)
    FunctionId knows;                                   // whether it reaches a node at an address
    FunctionId functions;                               // the names and types of its program's functions
};
// Enrols them when it is called first.
[[nodiscard]] const BuiltIns& built_ins();

}  // namespace rove
