// Running the compiler and the linker.
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

// For a command of a terminal. While it lives SIGINT, SIGTERM and SIGHUP do not end the process: they end the program that run() runs, and
// no other is begun, so that whoever made files for it removes them on the way out. Where the way out takes longer than a second (LLVM, in
// this process, asks nobody whether it is to go on), temporary folders are removed and the process ends. One at a time.
class Interruptible {
public:
    Interruptible();
    ~Interruptible();  // ends the process, where one of them came
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;

private:
    void end_at_last();
    std::array<struct sigaction, 3> before_;
    std::binary_semaphore is_over_{0};
    std::thread ends_at_last_;
};

// Whether one of them came, while somebody is Interruptible: what takes long and runs no program ends by itself, as cancelled.
[[nodiscard]] Status not_interrupted();

// Runs a program (found on PATH; no shell) to its end; its `out` is stdout and stderr together. unsupported: it is not installed; names
// `debian_package`. cancelled: see above. environment: as ProcessOptions'.
[[nodiscard]] Result<Ran> run(const std::vector<std::string>& command, const std::string& debian_package,
                              const std::vector<std::string>& environment = {});

}  // namespace rove::toolchain
