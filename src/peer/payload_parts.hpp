// PayloadParts: payloads that are larger than a frame and are arriving here, from all peers. Their parts are put together outside of the
// mailbox (CallsTaken::staged), within a bound for each peer and for all of them.
//
// Threads: under the engine's lock. Invariant: bytes() is the sum of Staging::bytes() over the engine's peers, and at most kAllStagedBytesMax.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lead/engine_lock.hpp"
#include "peer/peer_list.hpp"
#include "peer/peer_state.hpp"
#include "peer/spare_memory.hpp"

namespace rove {

class PayloadParts {
public:
    // `name`: of the node, for messages.
    PayloadParts(const PeerList& peers, const std::shared_ptr<SpareMemory>& memory, std::function<std::string()> name)
        : peers_(peers), memory_(memory), name_(std::move(name)) {}

    // False: the frame stays in the mailbox, because there is no room for the payload yet; or the part is wrong, and the link is now broken.
    [[nodiscard]] bool add(PeerState& from, const wire::Frame& frame) REQUIRES(lock_of<EngineLock>);
    // The whole payload, for its call. Nothing: it has not arrived whole.
    [[nodiscard]] std::optional<LargeBytes> take(PeerState& from, const wire::Staged& which)
        REQUIRES(lock_of<EngineLock>);
    void forget(PeerState& from, std::uint64_t number) REQUIRES(lock_of<EngineLock>) {
        bytes_ -= from.calls.staged.forget(number);
    }
    void forget_all(PeerState& from) REQUIRES(lock_of<EngineLock>) { bytes_ -= from.calls.staged.clear(); }
    // Cuts off peers that have begun a payload and do not keep sending it. Returns how many.
    [[nodiscard]] unsigned cut_off_slow_senders(TimePoint now) REQUIRES(lock_of<EngineLock>);

    // For a run that reads a payload itself, out of the mailbox (Gathering).
    [[nodiscard]] bool may_begin_elsewhere(const PeerState& from, const wire::Part& first) const
        REQUIRES(lock_of<EngineLock>);
    void begin_elsewhere(PeerState& from, const wire::Part& first, TimePoint now) REQUIRES(lock_of<EngineLock>);

    // The bytes of all payloads that are arriving.
    [[nodiscard]] std::size_t bytes() const REQUIRES(lock_of<EngineLock>) { return bytes_; }

private:
    const PeerList& peers_;
    const std::shared_ptr<SpareMemory>& memory_;
    const std::function<std::string()> name_;
    std::size_t bytes_ GUARDED_BY(lock_of<EngineLock>) = 0;
};

}  // namespace rove
