// PayloadParts: payloads that are larger than a frame, on their way here from all peers. Their parts are put together apart from the mailbox
// (PeerState::staged), within a bound for each peer and for all of them.
//
// Threads: under the node's lock.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "peer/peer_state.hpp"
#include "peer/spare_memory.hpp"

namespace rove {

class PayloadParts {
public:
    // `name`: of the node, for messages.
    PayloadParts(const std::vector<std::shared_ptr<PeerState>>& peers, const std::shared_ptr<SpareMemory>& memory,
                 std::function<std::string()> name)
        : peers_(peers), memory_(memory), name_(std::move(name)) {}

    // False: the frame stays, because there is no room for the payload yet; or it does not fit, and the link is broken.
    [[nodiscard]] bool add(PeerState& from, const wire::Frame& frame);
    // The whole payload, for its call. Nothing: it has not arrived whole.
    [[nodiscard]] std::optional<LargeBytes> take(PeerState& from, const wire::Staged& which);
    void forget(PeerState& from, std::uint64_t number) { bytes_ -= from.staged.forget(number); }
    void forget_all(PeerState& from) { bytes_ -= from.staged.clear(); }
    // Who has begun a payload goes on with it, or makes way. Returns how many peers were cut off.
    [[nodiscard]] unsigned cut_off_slow_senders(TimePoint now);

    // For a run that reads a payload itself, out of the mailbox (Gathering).
    [[nodiscard]] bool may_begin_elsewhere(const PeerState& from, const wire::Part& first) const;
    void begin_elsewhere(PeerState& from, const wire::Part& first, TimePoint now);

    // Of payloads that are on their way.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
    const std::vector<std::shared_ptr<PeerState>>& peers_;
    const std::shared_ptr<SpareMemory>& memory_;
    const std::function<std::string()> name_;
    std::size_t bytes_ = 0;
};

}  // namespace rove
