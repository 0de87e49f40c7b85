#include "peer/between_engines.hpp"

#include <algorithm>
#include <bit>

#include "peer/outbox.hpp"
#include "rove/error.hpp"

namespace rove {
namespace {

bool is_of_code(LeftForEngine::What what) {
    using What = LeftForEngine::What;
    return what == What::need || what == What::need_not_passed || what == What::code || what == What::lack;
}

constexpr std::string_view kNoRoom = "the result was dropped on its way: as many as may wait to be passed on";

LeftForEngine left_frame(LeftForEngine::What what, LeftBy by, wire::FrameHeader header, Bytes extra, Bytes payload) {
    header.extra_bytes = static_cast<std::uint16_t>(extra.size());
    header.body_bytes = static_cast<std::uint32_t>(extra.size() + payload.size());
    return {what, by, waiting_frame(header, extra, payload)};
}

// In place of an answer, or of a part of one: those parts that follow find that their call has ended.
wire::FrameHeader as_error(wire::FrameHeader answer) {
    answer.kind = wire::Kind::reply;
    answer.flags = wire::kError;
    answer.status = static_cast<std::uint8_t>(ErrorCode::overloaded);
    return answer;
}

}  // namespace

BetweenEngines::BetweenEngines(unsigned engines)
    : count_(engines),
      step_(std::bit_ceil(engines)),
      engines_(engines),
      links_(engines > 1 ? std::make_unique<LinkNames>() : nullptr) {}

void BetweenEngines::wake_by(unsigned engine, std::function<void()> wake) {
    One& of = engines_[engine];
    const MutexLock lock(of.mutex);
    of.wake = std::move(wake);
}

void BetweenEngines::entered(unsigned engine, NodeId name) {
    const MutexLock lock(names_mutex_);
    if (links_) links_->set(name, engine);
}

void BetweenEngines::left(unsigned engine, NodeId name) {
    const MutexLock lock(names_mutex_);
    if (links_) links_->erase(name, engine);
}

template <typename Change>
void BetweenEngines::count(One& of, const Change& change) {
    const bool was_behind = of.is_behind();
    change();
    if (of.is_behind() == was_behind) return;
    of.taken_at = Clock::now();
    of.behind = !was_behind;
    behind_.fetch_add(was_behind ? -1U : 1U, std::memory_order_relaxed);  // wraps around to one less
}

bool BetweenEngines::one_catches_up() const {
    const TimePoint since = Clock::now() - kCatchesUpFor;
    return std::ranges::any_of(engines_,
                               [since](const One& each) { return each.behind && each.taken_at.load() > since; });
}

bool BetweenEngines::add(One& to, Waiting added) {
    const std::size_t bytes = added.left.frame.size();
    const bool small = added.small;
    // Whoever asks for code asks again: it leaves a quarter of the room to answers and notices, for which nobody does.
    const auto most = [of_code = is_of_code(added.left.what)](std::size_t all) { return of_code ? all / 4 * 3 : all; };
    if (small ? to.small >= most(kLeftSmallMax) : to.bytes + bytes > most(kLeftBytesMax)) return false;
    to.waiting.push_back(std::move(added));
    count(to, [&] { (small ? to.small : to.bytes) += small ? 1 : bytes; });
    to.count.store(to.waiting.size(), std::memory_order_relaxed);
    if (to.wake) to.wake();
    return true;
}

bool BetweenEngines::leave(unsigned to, LeftForEngine::What what, const wire::Frame& frame, LeftBy by) noexcept {
    using What = LeftForEngine::What;
    const bool is_answer = what == What::to_caller || what == What::to_own_call || what == What::to_lower;
    const bool is_small = !is_answer && what != What::code;
    One& there = engines_[to];
    try {
        Waiting added{left_frame(what, by, frame.header, frame.extra, frame.payload), is_small};
        const MutexLock lock(there.mutex);
        if (add(there, std::move(added))) return true;
    } catch (const std::bad_alloc&) {  // an error takes less
    }
    if (!is_answer) return false;
    try {
        Waiting added{left_frame(what, by, as_error(frame.header), {}, as_bytes(kNoRoom)), true};
        const MutexLock lock(there.mutex);
        return add(there, std::move(added));
    } catch (const std::bad_alloc&) {
        return false;
    }
}

std::optional<unsigned> OtherEngines::with_lower(NodeId id, unsigned from) const {
    std::optional<unsigned> first;
    for (NodeId lower = 0; any() && lower < id; ++lower)
        if (const auto engine = with_link(lower); engine && *engine >= from)
            first = std::min(first.value_or(*engine), *engine);
    return first;
}

std::optional<LeftForEngine> BetweenEngines::take(unsigned engine) {
    One& from = engines_[engine];
    const MutexLock lock(from.mutex);
    if (from.waiting.empty()) return std::nullopt;
    Waiting first = std::move(from.waiting.front());
    from.waiting.pop_front();
    if (from.is_behind()) from.taken_at = Clock::now();
    count(from, [&] { (first.small ? from.small : from.bytes) -= first.small ? 1 : first.left.frame.size(); });
    from.count.store(from.waiting.size(), std::memory_order_relaxed);
    return std::move(first.left);
}

}  // namespace rove
