// The processes that compile bitcode for this one (serve.hpp).
//
// They are not started by base/process.hpp, because its programs are children of this process: the wait() and SIGCHLD of a program that uses
// Rove would report them, and fork() takes milliseconds if a process has much memory.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "bitcode/compiled.hpp"
#include "jit/process/generate.hpp"

namespace rove::bitcode {

struct Beginning;

// One such process. It ends with this object.
//
// Threads: one at a time. Invariants: it has no work between two calls of generate(). After its last answer (is_last(), messages.hpp) the socket
// is closed, and has_ended() is true. A forked child has no copy of the socket, so the process notices when this one ends.
class CompilerProcess {
public:
    // Returns before the new process is ready, so that the caller of begin() does not wait for LLVM's start. unsupported: the program is
    // not installed. overloaded: this machine has no process or descriptor left.
    [[nodiscard]] static Result<CompilerProcess> begin();
    ~CompilerProcess();
    CompilerProcess(CompilerProcess&&) = default;
    CompilerProcess& operator=(CompilerProcess&&) = default;

    // Whether it has ended: because LLVM gave up, because it had grown too large, or because another process ended it.
    [[nodiscard]] bool has_ended() const;
    // Nothing: it has ended before it answered, or was stopped (by a signal) and made no progress.
    [[nodiscard]] std::optional<Result<Generated>> generate(const GenerateRequest& request, const Bounds& bounds);

private:
    struct EndParent {
        void operator()(Beginning* beginning) const;
    };
    CompilerProcess(Descriptor socket, std::unique_ptr<Beginning, EndParent> begun);
    void close();
    // Waits until the socket has an answer (POLLIN) or room (POLLOUT), or the process has ended. False: it makes no progress, because it was
    // stopped by a signal.
    [[nodiscard]] bool wait_for(short event) const;
    Descriptor socket_;
    pid_t pid_ = -1;
    Descriptor handle_;  // used to end it; not open: this kernel has none
    std::unique_ptr<Beginning, EndParent> begun_;
};

// The compiling processes of this process, for all of its nodes: one for each compile that runs now, and at most one spare.
//
// Threads: any. Invariants: each compile has a process for itself; only the spare one is shared, under the lock, which is not held while a
// process starts, compiles or ends.
class CompilerProcesses {
public:
    // The child of a fork starts its own.
    [[nodiscard]] static CompilerProcesses& of_process();

    // Waits for the code. Errors: those of generate() and CompilerProcess::begin(). failed: LLVM gave up, or exceeded the bounds.
    [[nodiscard]] Result<Generated> generate(const GenerateRequest& request, const Bounds& bounds);

private:
    [[nodiscard]] Result<CompilerProcess> take();
    void give_back(CompilerProcess process);

    Mutex mutex_;
    std::optional<CompilerProcess> spare_ GUARDED_BY(mutex_);
};

}  // namespace rove::bitcode
