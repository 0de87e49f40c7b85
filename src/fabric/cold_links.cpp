#include "fabric/cold_links.hpp"

#include <utility>

namespace rove::fabric {

MayBeCold::~MayBeCold() {
    if (lists_ != nullptr) lists_->forget(*this);
}

void MayBeCold::warm_rarely() noexcept {
    lists_->note_warmed(*this);
    announce_cold(false);
}

MayBeCold::Said MayBeCold::hear() noexcept {
    if (!is_cold() || announces_cold()) return Said::nothing;
    if (is_doubted_) {
        announce_again();
        return Said::unlikely;
    }
    was_said_ = true;
    warm();
    return Said::something;
}

void MayBeCold::warm_if_arrived() noexcept {
    if (frames_seen() != frames_when_cooled_) warm();
}

// The link is about to be cold.
void MayBeCold::judge_bit() noexcept {
    const std::uint64_t before = std::exchange(frames_when_cooled_, frames_seen());
    is_doubted_ = std::exchange(was_said_, false) && frames_when_cooled_ == before;
}

void ColdLinks::take_out(std::vector<MayBeCold*>& list, const MayBeCold& link) noexcept {
    list[link.listed_at_] = list.back();
    list[link.listed_at_]->listed_at_ = link.listed_at_;
    list.pop_back();
}

void ColdLinks::add(MayBeCold& link) {
    if (const std::size_t room = cold_.size() + warmed_.size() + 1; warmed_.capacity() < room)
        warmed_.reserve(2 * room);
    cold_.push_back(&link);
    link.listed_at_ = cold_.size() - 1;
    link.lists_ = this;
    link.warmth_ = MayBeCold::Warmth::cold;
    link.judge_bit();
    link.announce_cold(true);
}

void ColdLinks::note_warmed(MayBeCold& link) noexcept {
    take_out(cold_, link);
    warmed_.push_back(&link);
    link.listed_at_ = warmed_.size() - 1;
    link.warmth_ = MayBeCold::Warmth::warmed;
}

void ColdLinks::forget(MayBeCold& link) noexcept {
    take_out(link.is_cold() ? cold_ : warmed_, link);
    link.warmth_ = MayBeCold::Warmth::warm;
    link.lists_ = nullptr;
}

MayBeCold& ColdLinks::take_warmed() noexcept {
    MayBeCold& link = *warmed_.back();
    forget(link);
    return link;
}

}  // namespace rove::fabric
