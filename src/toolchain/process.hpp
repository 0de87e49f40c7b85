// Running the compiler and other programs.
//
// Threads: run() by one at a time, because a signal ends only the program that was started last. not_interrupted() by any.
//
// Invariant: while no Interruptible exists, the signals do what they did before there was one.
#pragma once

#include <signal.h>

#include <array>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "base/process.hpp"
#include "base/result.hpp"

namespace rove::toolchain {

// The bytes of a program's output that are kept, from its beginning.
inline constexpr std::size_t kOutputBytesMax = 16 * 1024;

// For a command of a terminal. While an object of this class exists, SIGINT, SIGTERM and SIGHUP do not end the process: they end the
// program that run() runs, and run() starts no other, so that the functions that made temporary files return and remove them. If the object
// is not destroyed within a second (LLVM, in this process, cannot be interrupted), temporary folders are removed and the process ends. At
// most one object at a time.
class Interruptible {
public:
    Interruptible();
    ~Interruptible();  // ends the process if one of the signals arrived
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;

private:
    void end_at_last();
    std::array<struct sigaction, 3> before_;
    std::binary_semaphore is_over_{0};
    std::thread ends_at_last_;
};

// cancelled: one of the signals arrived while an Interruptible existed. For work that takes long and runs no program.
[[nodiscard]] Status not_interrupted();

// Runs a program (found on PATH; no shell) to its end; its `out` is stdout and stderr together. unsupported: it is not installed; names
// `debian_package`. cancelled: see above. environment: as ProcessOptions'.
[[nodiscard]] Result<Ran> run(const std::vector<std::string>& command, const std::string& debian_package,
                              const std::vector<std::string>& environment = {});

}  // namespace rove::toolchain
