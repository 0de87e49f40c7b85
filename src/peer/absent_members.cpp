#include "peer/absent_members.hpp"

#include <algorithm>
#include <cstring>

namespace rove {
namespace {

ByteBuffer whole(wire::FrameHeader header, Bytes extra, Bytes payload) {
    header.extra_bytes = static_cast<std::uint16_t>(extra.size());
    header.body_bytes = static_cast<std::uint32_t>(extra.size() + payload.size());
    ByteBuffer frame;
    frame.reserve(wire::kHeaderBytes + header.body_bytes);
    const Bytes head = std::as_bytes(std::span(&header, 1)).first(wire::kHeaderBytes);
    frame.insert(frame.end(), head.begin(), head.end());
    frame.insert(frame.end(), extra.begin(), extra.end());
    frame.insert(frame.end(), payload.begin(), payload.end());
    return frame;
}
wire::FrameHeader header_of(const ByteBuffer& frame) {
    wire::FrameHeader header;
    std::memcpy(&header, frame.data(), wire::kHeaderBytes);
    return header;
}

}  // namespace

void AbsentMembers::lost(NodeId member, const Process& process, std::string why) {
    const MutexLock lock(mutex_);
    Member& absent = members_[member];
    absent.why = std::move(why);
    absent.was_met = true;
    absent.process = process;
}

void AbsentMembers::had_taken(NodeId member, SentOn& calls) {
    const MutexLock lock(mutex_);
    if (calls.empty()) return;
    Member& absent = members_[member];
    calls.were_taken();
    if (!absent.gone_since) return (void)(absent.sent_on = std::exchange(calls, {}));
    orphan(calls, absent.why);  // that was known before the link's end was seen
}

void AbsentMembers::expected(NodeId member, const Process& process, std::string why) {
    const MutexLock lock(mutex_);
    const auto [place, is_new] = members_.try_emplace(member);
    Member& absent = place->second;
    if (is_new || absent.gone_since) absent.why = std::move(why);
    if (absent.process != process) orphan(absent.sent_on, absent.why);
    absent.process = process;
    absent.gone_since.reset();
}

void AbsentMembers::gone(NodeId member, std::string why, TimePoint now) {
    const MutexLock lock(mutex_);
    Member& absent = members_[member];
    if (!absent.was_met) absent.why = std::move(why);  // otherwise why the link ended says more
    absent.gone_since = now;
    orphan(absent.sent_on, absent.why);
}

void AbsentMembers::caller_left(NodeId origin) {
    const MutexLock lock(mutex_);
    for (auto& [id, member] : members_) member.sent_on.left(origin);
}

void AbsentMembers::answered(const wire::FrameHeader& call) {
    const MutexLock lock(mutex_);
    for (auto& [id, member] : members_) (void)member.sent_on.answered(call.node, call.call, call.generation);
}

AbsentMembers::Met AbsentMembers::met(NodeId id, const Process& process) {
    const MutexLock lock(mutex_);
    const auto found = members_.find(id);
    if (found == members_.end()) return {};
    Member& member = found->second;
    Met met;
    for (; !member.frames.empty(); drop_first(member))
        if (member.frames.front().at > member.dropped_until)
            met.frames.push_back(std::move(member.frames.front().bytes));
    if (member.process == process) met.sent_on = std::exchange(member.sent_on, {});
    orphan(member.sent_on, member.why);
    members_.erase(found);
    return met;
}

bool AbsentMembers::drop_old(TimePoint now) {
    if (kept_bytes() == 0 && kept_errors() == 0) return false;
    const MutexLock lock(mutex_);
    std::size_t dropped = 0;
    for (auto& [id, member] : members_) {
        if (!member.gone_since || now < *member.gone_since + kKeptForNextMax) continue;
        member.dropped_until = now - kKeptForNextMax;
        for (; !member.frames.empty() && member.frames.front().at <= member.dropped_until; ++dropped) {
            if (dropped == kKeptDropMax) return true;
            drop_oldest(member);
        }
        if (member.frames.empty()) member.in_parts.clear();
    }
    return false;
}

std::optional<TimePoint> AbsentMembers::drop_due() const {
    if (kept_bytes() == 0 && kept_errors() == 0) return std::nullopt;
    const MutexLock lock(mutex_);
    std::optional<TimePoint> due;
    for (const auto& [id, member] : members_)
        if (member.gone_since && !member.frames.empty())
            due = std::min(due.value_or(TimePoint::max()),
                           std::max(*member.gone_since, member.frames.front().at) + kKeptForNextMax);
    return due;
}

std::optional<std::string> AbsentMembers::why(NodeId member) const {
    const MutexLock lock(mutex_);
    const auto found = members_.find(member);
    return found != members_.end() && !found->second.why.empty() ? std::optional(found->second.why) : std::nullopt;
}

void AbsentMembers::drop_first(Member& member) {
    const std::size_t cost = member.frames.front().cost;
    member.frames.pop_front();
    if (cost == 0) {
        --member.errors;
        --errors_;
    }
    member.bytes -= cost;
    bytes_ -= cost;
}

// A result of which all parts were dropped is forgotten with them: the others are never kept.
void AbsentMembers::drop_oldest(Member& member) {
    const auto oldest = member.frames.begin();
    const wire::FrameHeader header = header_of(oldest->bytes);
    if (const auto of = header.kind == wire::Kind::part
                            ? member.in_parts.find({header.node, header.call, header.generation})
                            : member.in_parts.end();
        of != member.in_parts.end() && of->second.parts[of->second.dropped] == oldest &&
        ++of->second.dropped == of->second.parts.size())
        member.in_parts.erase(of);
    drop_first(member);
}

std::size_t AbsentMembers::begun_results() const {
    const MutexLock lock(mutex_);
    std::size_t begun = 0;
    for (const auto& [id, member] : members_) begun += member.in_parts.size();
    return begun;
}

// Without memory they stay where they are.
void AbsentMembers::orphan(SentOn& calls, const std::string& why) {
    if (calls.empty()) return;
    orphans_.push_back(
        {.calls = {},
         .why = Error(ErrorCode::disconnected, why + "; the call had been sent on there, and may have run")});
    orphans_.back().calls = std::exchange(calls, {});
}

AbsentMembers::Kept AbsentMembers::keep(NodeId id, const wire::FrameHeader& header, Bytes extra, Bytes payload,
                                        TimePoint now) {
    const MutexLock lock(mutex_);
    const auto found = members_.find(id);
    if (found == members_.end()) return Kept::unknown;
    return keep(found->second, header, extra, payload, now);
}

AbsentMembers::Kept AbsentMembers::keep(Member& member, const wire::FrameHeader& header, Bytes extra, Bytes payload,
                                        TimePoint now) {
    if ((header.flags & wire::kError) != 0)
        return keep_error(member, header, {reinterpret_cast<const char*>(payload.data()), payload.size()}, now);
    const Call call{header.node, header.call, header.generation};
    const auto began = member.in_parts.find(call);
    const bool has_parts = began != member.in_parts.end() && began->second.at > member.dropped_until;
    const TimePoint at = has_parts ? began->second.at : now;
    std::size_t cost = wire::kHeaderBytes + extra.size() + payload.size() + kKeptFrameBytes;
    std::size_t to_come = 0;
    bool is_next = true;
    if (header.kind == wire::Kind::part) {
        wire::Part part;
        std::memcpy(&part, extra.data(), sizeof part);
        is_next = has_parts == (part.offset != 0);
        if (part.offset == 0) {
            cost += kKeptPartsBytes;
            to_come = part.total_bytes;
        }
    } else if ((header.flags & wire::kParts) != 0) {
        is_next = has_parts;
    }
    const bool fits = is_next && member.bytes + cost + to_come <= kKeptBytesMax && bytes_ + cost <= kKeptBytesOfAllMax;
    const bool is_part = header.kind == wire::Kind::part;
    const bool is_kept = fits && [&] {
        std::list<KeptFrame> one;
        try {
            one.push_back({whole(header, extra, payload), cost, at});
            if (is_part && !has_parts) member.in_parts.insert_or_assign(call, Begun{.at = at, .parts = {}});
            if (is_part) member.in_parts.find(call)->second.parts.push_back(one.begin());
        } catch (const std::bad_alloc&) {
            return false;
        }
        member.frames.splice(member.frames.end(), one);  // iterators stay valid
        member.bytes += cost;
        bytes_ += cost;
        return true;
    }();
    if (!is_kept) {
        drop_parts(member, call);
        // A result of which a part was lost is of no use: the reply after its parts becomes an error.
        return is_part ? Kept::yes
                       : keep_error(member, header,
                                    "the result could not be kept while its caller's node was not reached", now);
    }
    if (!is_part) member.in_parts.erase(call);
    return Kept::yes;
}

// Parts that were kept before dropped_until leave with drop_old() or met().
void AbsentMembers::drop_parts(Member& member, const Call& call) {
    const auto began = member.in_parts.find(call);
    if (began == member.in_parts.end()) return;
    const Begun& begun = began->second;
    for (std::size_t i = begun.dropped; begun.at > member.dropped_until && i < begun.parts.size(); ++i) {
        member.bytes -= begun.parts[i]->cost;
        bytes_ -= begun.parts[i]->cost;
        member.frames.erase(begun.parts[i]);
    }
    member.in_parts.erase(began);
}

// Keeps as much of the error's text as kKeptErrorTextMax allows. If a type's name precedes the message, the message is cut.
AbsentMembers::Kept AbsentMembers::keep_error(Member& member, wire::FrameHeader header, std::string_view text,
                                              TimePoint now) {
    drop_parts(member, {header.node, header.call, header.generation});
    if (errors_ >= kKeptErrorsMax || member.errors >= kKeptErrorsOfMemberMax) return Kept::full;
    if ((header.flags & wire::kError) == 0) {
        header.flags = wire::kError;
        header.status = static_cast<std::uint8_t>(ErrorCode::disconnected);
    }
    if (const std::size_t type = text.find('\0');
        (header.flags & wire::kThrown) != 0 && (type == std::string_view::npos || type > kKeptErrorTextMax / 2)) {
        header.flags = static_cast<std::uint8_t>(header.flags & ~wire::kThrown);
        if (type != std::string_view::npos) text.remove_prefix(type + 1);
    }
    if (text.size() > kKeptErrorTextMax) text = text.substr(0, kKeptErrorTextMax);
    member.frames.push_back({whole(header, {}, std::as_bytes(std::span(text.data(), text.size()))), 0, now});
    ++member.errors;
    ++errors_;
    return Kept::yes;
}

}  // namespace rove
