// State that the direct links of one fabric share: the doorbell, the board, the fence, and the announcement that this process sleeps.
//
// Threads: as Fabric (fabric.hpp).
//
// Invariant: `warm_` are the links that are open and not cold: each adds itself when it is opened and removes itself when it is destroyed.
#pragma once

#include <memory>
#include <vector>

#include "base/reclaimer.hpp"
#include "fabric/direct/doorbell.hpp"
#include "fabric/direct/link.hpp"
#include "fabric/region_file.hpp"
#include "fabric/sleep_fence.hpp"

namespace rove::fabric {

class DirectLanes {
public:
    // unsupported: /proc is not mounted; overloaded: no more descriptors.
    [[nodiscard]] static Result<std::unique_ptr<DirectLanes>> open();

    [[nodiscard]] Result<std::unique_ptr<Link>> open_link();
    void announce_sleep();
    void end_sleep();
    [[nodiscard]] bool has_cold() const { return warm_.size() < links_; }
    void settle_announcements() noexcept { SleepFence::pay(); }
    [[nodiscard]] Board& board() { return board_; }

    // Used by the links.
    [[nodiscard]] const Doorbell& bell() const { return bell_; }
    [[nodiscard]] const Descriptor& board_file() const { return board_file_; }
    [[nodiscard]] Reclaimer& reclaimer() { return reclaimer_; }
    // Its place on the board. None: there are as many links as may be.
    [[nodiscard]] std::optional<std::uint32_t> add(DirectLink& link);
    void remove(DirectLink& link, std::uint32_t place) noexcept;
    void note_cold(DirectLink& link) noexcept;
    void note_warm(DirectLink& link) noexcept;

private:
    DirectLanes(Doorbell bell, Shared<BoardMemory> board)
        : bell_(std::move(bell)),
          board_file_(std::move(board.file)),
          board_memory_(std::move(board.memory)),
          board_(*board_memory_) {}

    Doorbell bell_;
    SleepFence fence_;
    Descriptor board_file_;
    MappedBoard board_memory_;
    Reclaimer reclaimer_;
    Board board_;
    std::size_t links_ = 0;          // those that are open
    std::vector<DirectLink*> warm_;  // has room for all of them
};

}  // namespace rove::fabric
