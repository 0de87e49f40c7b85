// The process that compiles what peers have sent: rove-compiler, which a node begins (process.hpp).
//
// LLVM expects bitcode of a compiler. What a peer has sent may crash it, keep it busy for ever, let it wait for a file, or take all memory,
// and no thread of a process can be made to let go of what it holds then. So a process that can be spared does it. It compiles one piece after
// the other, and ends where one of them goes wrong.
#pragma once

namespace rove::bitcode {

// Answers the questions that come on `socket` (messages.hpp). Ends the process when the other end is closed, at once also while it
// compiles; when LLVM gave up, or went beyond a question's bounds, which is the last answer; and when it has become large.
[[noreturn]] void serve(int socket);

}  // namespace rove::bitcode
