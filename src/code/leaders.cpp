#include "code/leaders.hpp"

#include <algorithm>
#include <utility>

namespace rove::code {

Leading& Leaders::add() {
    return places_.emplace_back(forgotten_);
}

bool Leaders::any_runs(const PackageCode& package) const {
    return std::ranges::any_of(
        places_, [&package](const Leading& each) { return each.runs_.load(std::memory_order_seq_cst) == &package; });
}

void Leaders::keep_for_all(std::unique_ptr<PackageCode> forgotten) noexcept {
    forgotten->forgotten = forgotten_.fetch_add(1, std::memory_order_relaxed) + 1;
    *end_ = std::move(forgotten);
    end_ = &(*end_)->forgotten_next;
    drop_what_all_have_let_go();
}

void Leaders::let_go(Leading& place) {
    place.let_go_.store(forgotten_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    drop_what_all_have_let_go();
}

void Leaders::drop_what_all_have_let_go() noexcept {
    std::uint64_t until = forgotten_.load(std::memory_order_relaxed);
    for (const Leading& each : places_) until = std::min(until, each.let_go_.load(std::memory_order_relaxed));
    drop_until(until);
}

// One by one: each owns the next one.
void Leaders::drop_until(std::uint64_t number) noexcept {
    while (first_ && first_->forgotten <= number) first_ = std::move(first_->forgotten_next);
    if (!first_) end_ = &first_;
}

}  // namespace rove::code
