// The process that compiles bitcode that peers have sent: rove-compiler, which a node starts (process.hpp).
//
// LLVM expects bitcode of a compiler. A peer's may crash it, keep it busy for ever, make it wait for a file, or take all memory, and no thread
// can then be forced to release what it holds. So an expendable process does it. It compiles one piece after the other, and ends if one of
// them fails.
#pragma once

namespace rove::bitcode {

// Answers the questions that arrive on `socket` (messages.hpp). Ends the process when the other end is closed, at once even while it
// compiles; when LLVM gave up, or exceeded a question's bounds, which is the last answer; and when it has become large.
[[noreturn]] void serve(int socket);

}  // namespace rove::bitcode
