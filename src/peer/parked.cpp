#include "peer/parked.hpp"

namespace rove {

bool Parked::wait_for_code(TimePoint now) {
    auto* const waits = std::get_if<ForCode>(&waits_);
    if (waits == nullptr) {
        waits_ = ForCode{.since = now};
        return true;
    }
    if (!waits->ask_again || now < *waits->ask_again) return false;
    waits->ask_again.reset();
    return true;
}

void Parked::wait_for_cache(TimePoint now) {
    if (!std::holds_alternative<ForCache>(waits_)) waits_ = ForCache{now};
}

void Parked::was_asked(NodeId asked, NodeId origin) {
    if (auto* const waits = std::get_if<ForCode>(&waits_)) {
        waits->asked = asked;
        waits->origin = origin;
    }
}

bool Parked::waits_for_code_of(NodeId asked) const {
    const auto* const waits = std::get_if<ForCode>(&waits_);
    return waits != nullptr && waits->asked == asked;
}

NodeId Parked::origin() const {
    const auto* const waits = std::get_if<ForCode>(&waits_);
    return waits != nullptr ? waits->origin : kNoNode;
}

void Parked::was_dropped(TimePoint now) {
    if (auto* const waits = std::get_if<ForCode>(&waits_)) waits->ask_again = now + kAskAgainAfter;
}

void Parked::is_arriving(TimePoint now) {
    if (auto* const waits = std::get_if<ForCode>(&waits_); waits != nullptr && !waits->has_come) waits->since = now;
}

void Parked::has_come(TimePoint now) {
    if (auto* const waits = std::get_if<ForCode>(&waits_)) {
        waits->ask_again = now + kAskAgainAfter;
        waits->has_come = true;
    }
}

bool Parked::ask_once_more(TimePoint now) {
    auto* const waits = std::get_if<ForCode>(&waits_);
    if (waits == nullptr || std::exchange(waits->was_lacked, true)) return false;
    waits->ask_again = now + kAskAgainAfter;
    return true;
}

bool Parked::code_has_come() const {
    const auto* const waits = std::get_if<ForCode>(&waits_);
    return waits != nullptr && waits->has_come;
}

bool Parked::is_about(const FunctionId& named, std::uint32_t by_handle) const {
    if (named == FunctionId{}) return handle == by_handle;
    return function == named || (function == FunctionId{} && handle == by_handle);
}

std::optional<TimePoint> Parked::held_until() const {
    const auto* const waits = std::get_if<ForThread>(&waits_);
    return waits != nullptr ? waits->held_until : std::nullopt;
}

std::optional<Error> Parked::expired(TimePoint now) const {
    if (const auto* const waits = std::get_if<ForCache>(&waits_);
        waits != nullptr && now - waits->since > kCompileWaitMax)
        return Error(ErrorCode::timed_out,
                     fmt::format("its package was not ready within {} s: its own constructors do not end, or bitcode "
                                 "takes LLVM so long, its "
                                 "own or that of others before it; call it again later, or build it with an image",
                                 kCompileWaitMax.count()));
    const auto* const waits = std::get_if<ForCode>(&waits_);
    if (waits == nullptr || now - waits->since <= kCodeWaitMax) return std::nullopt;
    if (waits->has_come)
        return Error(ErrorCode::overloaded,
                     "its code arrived, and was evicted by that of others each time before it could run; call it again "
                     "later, or give that node a larger --code-budget");
    return Error(ErrorCode::timed_out, "its code did not come in time; is the process that has it stopped?");
}

}  // namespace rove
