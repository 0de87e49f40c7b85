#include "fabric/board.hpp"

#include <algorithm>
#include <bit>

#include "fabric/cold_links.hpp"

namespace rove::fabric {

bool PlaceOnBoard::set() const {
    const std::size_t word = place_ / 64, group = word / kBoardWordsPerGroup;
    // Partners: the exchanges in Board::take().
    std::atomic_ref(memory_->groups[group][word % kBoardWordsPerGroup])
        .fetch_or(std::uint64_t{1} << place_ % 64, std::memory_order_release);
    std::atomic_ref(memory_->summary).fetch_or(std::uint64_t{1} << group, std::memory_order_seq_cst);
    // Either the owner, which checks the summary after it has announced its sleep, sees the bit, or this sees the announcement.
    std::atomic_ref asleep(memory_->asleep);
    return asleep.load(std::memory_order_seq_cst) != 0 && asleep.exchange(0, std::memory_order_relaxed) != 0;
}

std::optional<std::uint32_t> Board::give_place(MayBeCold& link) {
    if (free_.empty()) {
        if (links_.size() == kBoardPlaces) return {};
        if (links_.capacity() == links_.size()) {
            free_.reserve(2 * (links_.size() + 1));
            links_.reserve(2 * (links_.size() + 1));
        }
        links_.push_back(&link);
        return static_cast<std::uint32_t>(links_.size() - 1);
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    links_[place] = &link;
    return place;
}

void Board::take() noexcept {
    unsigned useful = 0, in_vain = 0;
    std::uint64_t groups = std::atomic_ref(memory_.summary).exchange(0, std::memory_order_acquire);
    for (; groups != 0; groups &= groups - 1) {
        const auto group = static_cast<std::size_t>(std::countr_zero(groups));
        for (std::size_t word = 0; word < kBoardWordsPerGroup; ++word) {
            std::atomic_ref bits_of(memory_.groups[group][word]);
            if (bits_of.load(std::memory_order_relaxed) == 0) continue;
            std::uint64_t bits = bits_of.exchange(0, std::memory_order_acquire);  // partner: PlaceOnBoard::set()
            for (; bits != 0; bits &= bits - 1) {
                const std::size_t place =
                    (group * kBoardWordsPerGroup + word) * 64 + static_cast<std::size_t>(std::countr_zero(bits));
                MayBeCold* const link = place < links_.size() ? links_[place] : nullptr;
                // Not whether something has arrived: a sender that was slow may have taken a later announcement, and said so before it sends.
                if (link == nullptr || !link->is_cold() || link->announces_cold()) {
                    ++in_vain;
                    continue;
                }
                link->warm();
                ++useful;
            }
        }
    }
    // A few are in vain where a link has become warm otherwise, and its sender did not know.
    if (in_vain <= 4 * (1 + useful)) {
        ignored_for_ = ignored_for_.zero();
    } else {
        ignored_for_ = std::clamp(2 * ignored_for_, kIgnoredMin, kIgnoredMax);
        ignored_until_ = Clock::now() + ignored_for_;
    }
}

}  // namespace rove::fabric
