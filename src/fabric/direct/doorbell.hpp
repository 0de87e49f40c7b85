// The doorbell of a fabric: a pipe whose reader is woken by a byte. Peers open it through /proc/PID/fd.
//
// The pipe holds one page, so bells that nobody hears cost no more than that: a bell that finds the pipe full is dropped, as the
// pipe is readable already. Both ends open it for reading and writing, so that it never lacks a reader and a bell raises no
// SIGPIPE, and never lacks a writer and the sleeper sees no end of file.
#pragma once

#include "fabric/direct/proc_file.hpp"

namespace rove::fabric {

class Doorbell {
public:
    Doorbell() = default;
    // This process's own. unsupported: /proc is not mounted; overloaded: no more descriptors.
    [[nodiscard]] static Result<Doorbell> open();
    // A peer's.
    [[nodiscard]] static Result<Doorbell> open_peers(std::uint32_t pid, const ProcFile& file);

    void ring() const noexcept;
    // Forgets the bells so far.
    void quiet() const noexcept;
    // Readable while it has been rung and not quieted.
    [[nodiscard]] int descriptor() const { return pipe_.number(); }

private:
    explicit Doorbell(Descriptor pipe) : pipe_(std::move(pipe)) {}
    Descriptor pipe_;
};

}  // namespace rove::fabric
