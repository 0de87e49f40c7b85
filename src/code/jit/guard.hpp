// Keeps LLVM's fatal errors, and its crashes, from ending the process. LLVM reports what no caller foresaw ("Cannot select …") by a handler that
// must not return, in the middle of its work, and then ends the process; and where bitcode has what no compiler makes, it may use a null
// pointer or all of its stack. So work that calls LLVM runs in a thread of its own. When LLVM gives up or faults, that thread stays in the
// handler until the process ends, with all that the work had built, and whoever waits for the work gets an error. Faults of other threads
// go to the process's own handlers, which it has back when no work runs.
//
// Bitcode of a few KiB can also keep LLVM busy for ever, or make it take all memory. Work on bitcode that a peer has sent is therefore
// stopped beyond its bounds, in the same way: by a signal, at a moment at which its thread is in LLVM's own code, and not in the C library,
// whose locks it might keep.
//
// Threads: any.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "code/jit/jit.hpp"

namespace rove::code::jit {

// How often LLVM may give up in one process; afterwards it is given nothing any more, and images still run. Each time keeps one thread: a
// stack (64 MiB of addresses, of which LLVM touches some 100 KiB) and what LLVM had made of one package (some 1 MiB for one of 10 KiB).
// Work that was stopped for its memory counts as half of them, because it keeps that. Work that has begun by then ends, so there may be one thread more for each node that compiles at that moment.
inline constexpr int kGivenUpMax = 8;

// Sets the handlers for the process; once, before any work.
void set_llvm_handlers();

// Runs the work to its end, or until LLVM gives up: failed, with LLVM's words. Then the work never returns, so what it has locked or half
// changed must be nobody else's. unsupported: LLVM has given up kGivenUpMax times. overloaded: the machine has no thread for it.
// Beyond the bounds LLVM counts as having given up; what it has taken by then is lost to the process.
[[nodiscard]] Status run_guarded(const std::string& what, const std::function<void()>& work,
                                 const std::optional<Bounds>& bounds = std::nullopt);

// As above, while no other work runs: what changes settings that LLVM has once for the process.
[[nodiscard]] Status run_guarded_alone(const std::string& what, const std::function<void()>& work);

// As run_guarded(), for work that returns a Result.
template <typename Work>
[[nodiscard]] auto guarded(const std::string& what, const Work& work) -> decltype(work()) {
    std::optional<decltype(work())> result;
    ROVE_CHECK(run_guarded(what, [&] { result.emplace(work()); }));
    return std::move(*result);
}

}  // namespace rove::code::jit
