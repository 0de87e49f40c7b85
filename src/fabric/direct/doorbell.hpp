// The doorbell of a fabric: a pipe whose reader is woken by a byte. Peers open it through /proc/PID/fd.
//
// The pipe holds one page, so bells that are never read cost no more than that: if the pipe is full, a bell is dropped, because the
// pipe is readable already.
//
// Threads: ring() and drain() by any: each is one system call.
//
// Invariant: both ends have it open for reading and writing: it always has a reader, so that a bell raises no SIGPIPE, and always a
// writer, so that the sleeper sees no end of file.
#pragma once

#include "fabric/proc_file.hpp"

namespace rove::fabric {

class Doorbell {
public:
    Doorbell() = default;
    // This process's doorbell. unsupported: /proc is not mounted; overloaded: no more descriptors.
    [[nodiscard]] static Result<Doorbell> open();
    // A peer's doorbell.
    [[nodiscard]] static Result<Doorbell> open_peers(std::uint32_t pid, const ProcFile& file);

    void ring() const noexcept;
    // Discards the bells that have been rung so far.
    void drain() const noexcept;
    // Readable from ring() until drain().
    [[nodiscard]] int descriptor() const { return pipe_.number(); }

private:
    explicit Doorbell(Descriptor pipe) : pipe_(std::move(pipe)) {}
    Descriptor pipe_;
};

}  // namespace rove::fabric
