// Members that this node has no link to: why, the replies that are kept until the control plane has met them again, and the calls
// that were sent on to them.
//
// A call that was sent on is answered by a node that its caller may not have a link to at that moment. The reply waits here until the
// member is met. Another process may have its id by then, and the reply may be for a call of that process: it gets all kept frames, and
// recognises its own calls by their generations, which begin at random. Frames for a process that has ended are dropped after
// kKeptForNextMax, because there may never be another one. Calls that it had taken from others may have ended with it: their callers
// are notified as soon as that is known (take_orphans()).
//
// They are the whole node's: an engine that meets a member gets what any engine has kept for it.
//
// Threads: any. It has a lock of its own, which is taken under that of an engine, and under which nothing else is asked.
//
// Invariants: kept_bytes() and kept_errors() are the sums over all members, and within the bounds below. A result is kept as a whole, or an
// error in its place. A call is with one member, or among the orphans, and is taken from there once.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "peer/calls.hpp"
#include "peer/sent_on.hpp"
#include "rove/node.hpp"
#include "wire/control.hpp"
#include "wire/frame.hpp"

namespace rove {

// The memory that a kept frame takes beside its bytes, in the list and in the allocator, and a result in parts beside its frames.
inline constexpr std::size_t kKeptFrameBytes = 112;
inline constexpr std::size_t kKeptPartsBytes = 160;
// Results for the callers at one member, including that: 30 of the largest that fit into one frame. A further one is replaced by an error.
inline constexpr std::size_t kKeptBytesMax = 8UL * 1024 * 1024;
// For all members together: 8 that use all that one may.
inline constexpr std::size_t kKeptBytesOfAllMax = 8 * kKeptBytesMax;
// Errors are kept beyond that, for all members together: as many as a node may have calls in flight. A frame of one is a header, at
// most 160 bytes of text and what it takes beside: 65,536 x 288 bytes = 18 MiB. One member has an eighth. Later ones are lost.
inline constexpr std::size_t kKeptErrorsMax = kCallsMax;
inline constexpr std::size_t kKeptErrorsOfMemberMax = kKeptErrorsMax / 8;
inline constexpr std::size_t kKeptErrorTextMax = 160;
// How long replies are kept for a member whose process has gone: what it takes to start another one in its place, and to hear of it.
inline constexpr auto kKeptForNextMax = std::chrono::seconds(20);
// Frames that are dropped in one step.
inline constexpr std::size_t kKeptDropMax = 256;

class AbsentMembers {
public:
    using Process = wire::control::PublicKey;  // each process of a member has a key of its own
    using Frames = std::deque<ByteBuffer>;     // whole frames, in the order in which they were kept
    struct Met {
        Frames frames;
        SentOn sent_on;
    };
    enum class Kept : std::uint8_t {
        yes,     // for when the member is met again, or another process in its place; or an error was, instead
        full,    // nothing was, not even that
        unknown  // nothing was ever known of the member
    };

    // The link to it has ended.
    void lost(NodeId member, const Process& process, std::string why) EXCLUDES(mutex_);
    // These were sent on to it over that link, and taken. It is known to be lost. Without memory `calls` stays as it is.
    void had_taken(NodeId member, SentOn& calls) EXCLUDES(mutex_);
    // The control plane tries to meet that process.
    void expected(NodeId member, const Process& process, std::string why) EXCLUDES(mutex_);
    // Its process has ended, or left.
    void gone(NodeId member, std::string why, TimePoint now) EXCLUDES(mutex_);
    // There is a link to it. Gives what was kept for its id, and the calls that had been sent on to that process.
    [[nodiscard]] Met met(NodeId member, const Process& process) EXCLUDES(mutex_);
    // Drops what has been kept for kKeptForNextMax for processes that have gone, in steps. True: there is more.
    [[nodiscard]] bool drop_old(TimePoint now) EXCLUDES(mutex_);
    // When that is due next.
    [[nodiscard]] std::optional<TimePoint> drop_due() const EXCLUDES(mutex_);
    // Calls that were on processes that have gone, process by process, and what to report to their callers. Whoever takes them reports it.
    // Needs no memory.
    struct Orphans {
        SentOn calls;
        Error why;
    };
    [[nodiscard]] std::list<Orphans> take_orphans() noexcept EXCLUDES(mutex_) {
        const MutexLock lock(mutex_);
        return std::exchange(orphans_, {});
    }

    // The caller of calls that were sent on to them has gone; one of them was answered another way.
    void caller_left(NodeId origin) EXCLUDES(mutex_);
    void answered(const wire::FrameHeader& call) EXCLUDES(mutex_);

    // Why there is no link; nothing: nothing is known of the member.
    [[nodiscard]] std::optional<std::string> why(NodeId member) const EXCLUDES(mutex_);
    // Keeps a reply, or a part of one, within the bounds above. If one part of a result is not kept, because room or memory is short, none is, and
    // its reply becomes an error. Throws std::bad_alloc if there is no memory for that error.
    [[nodiscard]] Kept keep(NodeId member, const wire::FrameHeader& header, Bytes extra, Bytes payload, TimePoint now)
        EXCLUDES(mutex_);
    // For all members together: bytes of results, and errors.
    [[nodiscard]] std::size_t kept_bytes() const { return bytes_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::size_t kept_errors() const { return errors_.load(std::memory_order_relaxed); }
    // Results of which parts are kept, and not yet all.
    [[nodiscard]] std::size_t begun_results() const EXCLUDES(mutex_);

private:
    using Call = std::tuple<NodeId, std::uint16_t, std::uint32_t>;  // origin, call, generation
    struct KeptFrame {
        ByteBuffer bytes;
        std::size_t cost;  // 0: an error
        TimePoint at;      // of a result in parts: when its first part arrived, so that all are dropped together
    };
    // Its parts are found here, because a search among all frames would take as long as there are many.
    struct Begun {
        TimePoint at;
        std::vector<std::list<KeptFrame>::iterator> parts;
        std::size_t dropped = 0;  // of `parts`, the first, which were dropped because they were old
    };
    struct Member {
        std::string why;
        Process process;
        bool was_met = false;
        std::optional<TimePoint> gone_since;  // its process has gone
        std::list<KeptFrame> frames;
        TimePoint dropped_until{};  // what was kept until then is of no use, if it is there yet
        SentOn sent_on;
        std::size_t bytes = 0;           // of results
        std::size_t errors = 0;          // of `frames`
        std::map<Call, Begun> in_parts;  // results whose parts so far are all kept
    };
    void drop_first(Member& member) REQUIRES(mutex_);
    void drop_oldest(Member& member) REQUIRES(mutex_);
    // What was kept of a result whose reply was not. Needs no memory.
    void drop_parts(Member& member, const Call& call) REQUIRES(mutex_);
    void orphan(SentOn& calls, const std::string& why) REQUIRES(mutex_);
    [[nodiscard]] Kept keep(Member& member, const wire::FrameHeader& header, Bytes extra, Bytes payload, TimePoint now)
        REQUIRES(mutex_);
    [[nodiscard]] Kept keep_error(Member& member, wire::FrameHeader header, std::string_view text, TimePoint now)
        REQUIRES(mutex_);

    mutable Mutex mutex_;
    // One line each, as long as they are away.
    std::unordered_map<NodeId, Member> members_ GUARDED_BY(mutex_);
    std::list<Orphans> orphans_ GUARDED_BY(mutex_);
    // Changed under the lock. Mostly nothing is kept, and a thread that is about to sleep need not take it to see that.
    std::atomic<std::size_t> bytes_{0}, errors_{0};
};

}  // namespace rove
