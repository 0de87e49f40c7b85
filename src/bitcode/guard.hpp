// Prevents LLVM's fatal errors and crashes from ending the process. LLVM reports unforeseen errors ("Cannot select …") by a handler that must
// not return, in the middle of its work, and then ends the process; and if bitcode contains something that no compiler makes, it may use a null
// pointer or exhaust its stack. So work that calls LLVM runs in a thread of its own. When LLVM gives up or faults, that thread stays in the
// handler until the process ends, with everything that the work had built, and the thread that waits for the work gets an error. Faults of other
// threads are passed to the process's own handlers, which are restored when no work runs.
//
// This is for bitcode of the program's own, and for linking. Bitcode that peers have sent is compiled in another process
// (jit/process/process.hpp).
//
// Threads: any, several at the same time; run_guarded_alone() waits for all others.
//
// Invariants: while work runs, on_fault() (guard.cpp) handles the signals of kFaults, unless the program has set its own handler since; when no
// work runs, the handlers from before are set again. A thread that has given up executes nothing more.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace rove::bitcode {

// How often LLVM may give up in one process; afterwards all guarded work is refused, and images still run. Each time keeps one thread: a
// stack (64 MiB of addresses, of which LLVM uses some 100 KiB) and what LLVM had made of one package (some 1 MiB for one of 10 KiB). Work
// that has begun by then continues, so there may be one more thread for each node that links at that moment.
inline constexpr int kGivenUpMax = 8;

// Sets the handlers for the process; called once, before any work.
void set_llvm_handlers();

// Runs the work to its end, or until LLVM gives up: failed, with LLVM's message. Then the work never returns, so no other code may need
// what it has locked or partly changed. unsupported: LLVM has given up kGivenUpMax times. overloaded: the machine has no thread for it.
[[nodiscard]] Status run_guarded(const std::string& what, const std::function<void()>& work);

// The same for work that changes process-wide settings of LLVM: no other work runs at that time.
[[nodiscard]] Status run_guarded_alone(const std::string& what, const std::function<void()>& work);

// run_guarded() for work that returns a Result.
template <typename Work>
[[nodiscard]] auto guarded(const std::string& what, const Work& work) -> decltype(work()) {
    std::optional<decltype(work())> result;
    ROVE_CHECK(run_guarded(what, [&] { result.emplace(work()); }));
    return std::move(*result);
}

}  // namespace rove::bitcode
