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
            doubted_.reserve(2 * (links_.size() + 1));
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

void Board::take_word(std::size_t group, std::size_t word, Taken& taken) noexcept {
    std::atomic_ref bits_of(memory_.groups[group][word]);
    if (bits_of.load(std::memory_order_relaxed) == 0) return;
    std::uint64_t bits = bits_of.exchange(0, std::memory_order_acquire);  // partner: PlaceOnBoard::set()
    for (; bits != 0; bits &= bits - 1) {
        const std::size_t place =
            (group * kBoardWordsPerGroup + word) * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        MayBeCold* const link = place < links_.size() ? links_[place] : nullptr;
        const MayBeCold::Said said = link != nullptr ? link->hear() : MayBeCold::Said::nothing;
        ++(said == MayBeCold::Said::something ? taken.useful : taken.in_vain);
        if (said == MayBeCold::Said::unlikely) doubted_.push_back(link);  // there is room for all
    }
}

// False: too many bits were in vain, and the next look begins with those that are left.
bool Board::take_words(std::size_t group, std::size_t from, std::size_t to, Taken& taken) noexcept {
    for (std::size_t word = from; word < to; ++word) {
        if (taken.in_vain >= kVainMax) {
            next_group_ = group;
            next_word_ = word;
            return false;
        }
        take_word(group, word, taken);
    }
    return true;
}

bool Board::take() noexcept {
    Taken taken;
    const std::size_t first = next_group_, begin = next_word_;
    const std::uint64_t groups = std::atomic_ref(memory_.summary).exchange(0, std::memory_order_acquire);
    std::uint64_t left = std::rotr(groups, static_cast<int>(first));
    const bool begins_within = (left & 1U) != 0 && begin > 0;  // the words before that one are the last
    for (; left != 0; left &= left - 1) {
        const std::size_t ahead = static_cast<std::size_t>(std::countr_zero(left));
        if (!take_words((first + ahead) % kBoardGroups, ahead == 0 ? begin : 0, kBoardWordsPerGroup, taken)) break;
    }
    if (begins_within && (left != 0 || !take_words(first, 0, begin, taken))) left |= 1U;
    if (left != 0)
        std::atomic_ref(memory_.summary)
            .fetch_or(std::rotl(left, static_cast<int>(first)), std::memory_order_relaxed);  // this thread looks again
    // A few are in vain where a link has become warm otherwise, and its sender did not know.
    if (!doubted_.empty())
        ignored_for_ = kIgnoredMax;  // the fence interrupts all senders
    else if (taken.in_vain <= 4 * (1 + taken.useful))
        ignored_for_ = ignored_for_.zero();
    else
        ignored_for_ = std::clamp(2 * ignored_for_, kIgnoredMin, kIgnoredMax);
    ignores_ = ignored_for_ != ignored_for_.zero();
    if (ignores_) ignored_until_ = Clock::now() + ignored_for_;
    return !doubted_.empty();
}

void Board::look_at_doubted() noexcept {
    for (MayBeCold* const link : doubted_) link->warm_if_arrived();
    doubted_.clear();
}

}  // namespace rove::fabric
