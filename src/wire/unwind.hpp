// Checks the unwind table (.eh_frame) of an image that arrived, or of code that was linked from bitcode. Once a table is registered, every
// exception of the process searches it, so all of it is checked before that.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace rove::wire {

struct UnwindTable {
    Bytes block;             // the code that contains the table
    std::size_t offset = 0;  // offset of the table in the block, which contains it
    std::size_t bytes = 0;   // size of the table
};

// Checks all records up to the word of zeros that ends the table: their lengths, the common record to which each function's points, the
// encodings, and that the code, the personality routine and the exception table of each are inside the block. The instructions about the
// function's own stack are not interpreted: only exceptions that pass through this code follow them.
[[nodiscard]] Status check_unwind_table(const UnwindTable& table);

}  // namespace rove::wire
