// The loopback fabric: direct lanes between fabrics of one process, without any transport. One thread can drain
// both sides, so that a test runs in the same order each time.
//
// Fabrics with the same Exchange can connect; an offer is a number that the exchange knows.
//
// Threads: each fabric, like every Fabric, is used by one thread at a time; the two ends of a link may be on different threads. Only
// the Exchange is shared, under its own lock, and only when links are opened, connected and closed.
//
// Invariant: the memory, the bell and the board of an end exist for as long as either end (Landing), so neither can use what the other has
// destroyed.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "fabric/fabric.hpp"

namespace rove::fabric {

// An event descriptor that wakes one fabric; it outlives the fabric while a peer may still ring it.
class Bell {
public:
    [[nodiscard]] static Result<std::shared_ptr<Bell>> open();
    explicit Bell(int descriptor) : descriptor_(descriptor) {}
    ~Bell();
    Bell(const Bell&) = delete;
    void ring() noexcept;
    // Whether it was rung since the last call.
    [[nodiscard]] bool take() noexcept;
    [[nodiscard]] int descriptor() const { return descriptor_; }

private:
    int descriptor_;
};

// What the links of one fabric share, and their peers use, which may outlive it.
struct BellAndBoard {
    std::shared_ptr<Bell> bell;
    BoardMemory board{};
};

// The memory that one end of a link owns and the other may use, for as long as either end exists.
struct Landing {
    Region region{};
    std::shared_ptr<BellAndBoard> bell_and_board;
    std::uint32_t place = 0;  // of the other end, on the board
};

class Exchange {
public:
    [[nodiscard]] std::uint64_t add(std::shared_ptr<Landing> landing);
    [[nodiscard]] std::shared_ptr<Landing> find(std::uint64_t id);
    void remove(std::uint64_t id);

private:
    Mutex mutex_;
    std::unordered_map<std::uint64_t, std::shared_ptr<Landing>> landings_ GUARDED_BY(mutex_);
    std::uint64_t last_ GUARDED_BY(mutex_) = 0;
};

class LoopbackLink : public Link {
public:
    LoopbackLink(std::shared_ptr<Exchange> exchange, std::shared_ptr<BellAndBoard> bell_and_board, Board& board,
                 std::vector<LoopbackLink*>& links);
    ~LoopbackLink() override;

    [[nodiscard]] const ByteBuffer& offer() const override { return offer_; }
    [[nodiscard]] Status connect(Bytes peer_offer) override;
    [[nodiscard]] Lane lane() const override { return remote_ ? Lane::direct : Lane::none; }
    void announce_sleep(bool asleep);
    [[nodiscard]] bool can_be_cold() const override { return true; }
    [[nodiscard]] bool announces_cold() const override {
        return std::atomic_ref(own_->region.wanted).load(std::memory_order_relaxed) == Wanted::bit;
    }

protected:
    void transmit(Traffic, std::uint64_t, std::size_t) override {}  // the frame is in the peer's memory already
    void transmit_credit(Traffic traffic) override;
    [[nodiscard]] bool peer_here_wants_wake() const override;
    void wake_peer() override;
    void announce_cold(bool cold) noexcept override;
    void announce_again() noexcept override;

    std::shared_ptr<Landing> own_;
    std::shared_ptr<Landing> remote_;  // the peer's

private:
    std::shared_ptr<Exchange> exchange_;
    Board& board_;                       // its fabric's, which outlives the link
    std::vector<LoopbackLink*>& links_;  // its fabric's
    std::uint64_t id_ = 0;
    ByteBuffer offer_;
};

class LoopbackFabric : public Fabric {
public:
    // overloaded: no more file descriptors.
    [[nodiscard]] static Result<std::unique_ptr<Fabric>> open(std::shared_ptr<Exchange> exchange);

    [[nodiscard]] std::string_view name() const override { return "loopback"; }
    [[nodiscard]] Result<std::unique_ptr<Link>> open_link() override;
    unsigned progress() override { return bell_and_board_->bell->take() ? 1 : 0; }
    [[nodiscard]] bool needs_progress() const override { return false; }
    [[nodiscard]] std::vector<int> descriptors() const override { return {bell_and_board_->bell->descriptor()}; }
    [[nodiscard]] bool announce_sleep() override;
    void end_sleep() override;

protected:
    LoopbackFabric(std::shared_ptr<Exchange> exchange, std::shared_ptr<Bell> bell)
        : exchange_(std::move(exchange)),
          bell_and_board_(std::make_shared<BellAndBoard>(std::move(bell))),
          own_board_(bell_and_board_->board) {
        board_ = &own_board_;
    }

    std::shared_ptr<Exchange> exchange_;
    std::shared_ptr<BellAndBoard> bell_and_board_;
    Board own_board_;
    std::vector<LoopbackLink*> links_;  // open links; each removes itself
};

}  // namespace rove::fabric
