#include "node/absent_members.hpp"

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

}  // namespace

void AbsentMembers::lost(NodeId member, const Process& process, std::string why, std::deque<Forwarded> sent_on) {
    Member& absent = members_[member];
    absent.why = std::move(why);
    absent.was_met = true;
    absent.process = process;
    if (!sent_on.empty()) absent.sent_on = std::move(sent_on);
    if (absent.is_gone) orphan_calls(absent);  // that was known before the link's end was seen
}

void AbsentMembers::expected(NodeId member, const Process& process, std::string why) {
    const auto [place, is_new] = members_.try_emplace(member);
    Member& absent = place->second;
    if (is_new || absent.is_gone) absent.why = std::move(why);
    if (absent.process != process) orphan_calls(absent);
    absent.process = process;
    absent.is_gone = false;
}

void AbsentMembers::gone(NodeId member, std::string why, TimePoint now) {
    Member& absent = members_[member];
    if (!absent.was_met) absent.why = std::move(why);  // otherwise why the link ended says more
    absent.is_gone = true;
    absent.last_kept = now;
    orphan_calls(absent);
}

AbsentMembers::Met AbsentMembers::met(NodeId member, const Process& process) {
    const auto found = members_.find(member);
    if (found == members_.end()) return {};
    Met met{.frames = std::exchange(found->second.frames, {}), .sent_on = {}};
    if (found->second.process == process) met.sent_on.swap(found->second.sent_on);
    drop_frames(found->second);
    orphan_calls(found->second);
    members_.erase(found);
    return met;
}

void AbsentMembers::drop_old(TimePoint now) {
    if (bytes_ == 0 && errors_ == 0) return;
    for (auto& [id, member] : members_)
        if (member.is_gone && now >= member.last_kept + kKeptForNextMax) drop_frames(member);
}

std::optional<TimePoint> AbsentMembers::drop_due() const {
    if (bytes_ == 0 && errors_ == 0) return std::nullopt;
    std::optional<TimePoint> due;
    for (const auto& [id, member] : members_)
        if (member.is_gone && !member.frames.empty())
            due = std::min(due.value_or(TimePoint::max()), member.last_kept + kKeptForNextMax);
    return due;
}

const std::string* AbsentMembers::why(NodeId member) const {
    const auto found = members_.find(member);
    return found != members_.end() && !found->second.why.empty() ? &found->second.why : nullptr;
}

void AbsentMembers::drop_frames(Member& member) {
    bytes_ -= std::exchange(member.bytes, 0);
    errors_ -= std::exchange(member.errors, 0);
    member.frames.clear();
    member.in_parts.clear();
}

void AbsentMembers::orphan_calls(Member& member) {
    for (const Forwarded& call : std::exchange(member.sent_on, {})) orphans_.push_back({call, member.why});
}

AbsentMembers::Kept AbsentMembers::keep(NodeId id, const wire::FrameHeader& header, Bytes extra, Bytes payload,
                                        TimePoint now) {
    const auto found = members_.find(id);
    if (found == members_.end()) return Kept::unknown;
    found->second.last_kept = now;
    keep(found->second, header, extra, payload);
    return Kept::yes;
}

void AbsentMembers::keep(Member& member, const wire::FrameHeader& header, Bytes extra, Bytes payload) {
    if ((header.flags & wire::kError) != 0)
        return keep_error(member, header, {reinterpret_cast<const char*>(payload.data()), payload.size()});
    const Call call{header.node, header.call, header.generation};
    const std::size_t bytes = wire::kHeaderBytes + extra.size() + payload.size();
    bool fits = member.bytes + bytes <= kKeptBytesMax && bytes_ + bytes <= kKeptBytesOfAllMax;
    if (header.kind == wire::Kind::part) {
        wire::Part part;
        std::memcpy(&part, extra.data(), sizeof part);
        // A result of which a part was lost is of no use: the reply after its parts becomes an error.
        if (part.offset == 0)
            fits = fits && member.bytes + part.total_bytes <= kKeptBytesMax && member.in_parts.insert(call).second;
        else
            fits = fits && member.in_parts.contains(call);
        if (!fits) {
            member.in_parts.erase(call);
            return;
        }
    } else if ((header.flags & wire::kParts) != 0) {
        fits = member.in_parts.erase(call) > 0 && fits;
    }
    if (!fits)
        return keep_error(member, header, "the result could not be kept while its caller's node was not reached");
    member.frames.push_back(whole(header, extra, payload));
    member.bytes += bytes;
    bytes_ += bytes;
}

// With as much of its text as kKeptErrorTextMax allows.
void AbsentMembers::keep_error(Member& member, wire::FrameHeader header, std::string_view text) {
    member.in_parts.erase({header.node, header.call, header.generation});
    if (errors_ >= kKeptErrorsMax) return;
    if ((header.flags & wire::kError) == 0) {
        header.flags = wire::kError;
        header.status = static_cast<std::uint8_t>(ErrorCode::disconnected);
    }
    if (text.size() > kKeptErrorTextMax) text = text.substr(0, kKeptErrorTextMax);
    member.frames.push_back(whole(header, {}, std::as_bytes(std::span(text.data(), text.size()))));
    ++member.errors;
    ++errors_;
}

}  // namespace rove
