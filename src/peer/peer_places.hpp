// PeerPlaces: how many peers a node has, all of its engines together, and how many it may have.
//
// Threads: any, without a lock.
//
// Invariant: at most kPeersMax are taken.
#pragma once

#include <atomic>
#include <cstddef>

namespace rove {

// Each has 4 MiB of addresses for the mailboxes of a link, and of memory what that needs: SECURITY.md has the sums, engine/mappings.hpp that of
// the mappings.
inline constexpr std::size_t kPeersMax = 16'384;

class PeerPlaces {
public:
    // False: there is none.
    [[nodiscard]] bool take() noexcept {
        std::size_t taken = taken_.load(std::memory_order_relaxed);
        while (taken < kPeersMax)
            if (taken_.compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed)) return true;
        return false;
    }
    void give_back() noexcept { taken_.fetch_sub(1, std::memory_order_relaxed); }

private:
    std::atomic<std::size_t> taken_{0};
};

// One that is taken, until it is given back or kept.
class PeerPlace {
public:
    explicit PeerPlace(PeerPlaces& places) : places_(places.take() ? &places : nullptr) {}
    ~PeerPlace() {
        if (places_ != nullptr) places_->give_back();
    }
    PeerPlace(const PeerPlace&) = delete;

    [[nodiscard]] bool is_taken() const { return places_ != nullptr; }
    // Whoever has the peer gives it back.
    void keep() { places_ = nullptr; }

private:
    PeerPlaces* places_;
};

}  // namespace rove
