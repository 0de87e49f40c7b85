// A file of this process that another process of the same user opens through /proc/PID/fd, and the checks that it is the same file.
//
// Threads: any.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace rove::fabric {

// The description of one file in an offer. 20 bytes.
struct ProcFile {
    std::uint32_t descriptor = 0;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    auto operator<=>(const ProcFile&) const = default;

    [[nodiscard]] static Result<ProcFile> of(int descriptor);
    void write_to(Writer& out) const;
    static ProcFile read_from(Reader& in);
    // Opens the file for reading and writing, without blocking. `kind` is S_IFREG for a memory file, or S_IFIFO for a pipe. No other
    // file is ever opened, and no other file's file system is queried. unsupported: process `pid` has no such file of this user;
    // overloaded: no more descriptors.
    [[nodiscard]] Result<Descriptor> open(std::uint32_t pid, mode_t kind) const;
};

}  // namespace rove::fabric
