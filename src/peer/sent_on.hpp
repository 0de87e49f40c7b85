// SentOn: the calls of other nodes that were forwarded to one peer, from when they were sent, or queued for lack of room, until their answers.
//
// Their callers are notified if the peer's process ends before that. A call is identified by its slot in its caller's table: another call from
// that slot means that the first one has ended. Answers to callers at this node pass through it. Answers to callers of other nodes may take
// another way: the oldest of these calls are forgotten first.
//
// Threads: under the engine's lock; what AbsentMembers keeps, under that one's. Invariants: `calls_`, `places_by_age_` and `count_of_` are three
// indexes of the same calls, at most kMax of them; a caller's slot is there once.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "base/ids.hpp"
#include "wire/frame.hpp"

namespace rove {

struct Forwarded {
    std::uint64_t position;  // where its frame ends in the peer's ring; SentOn::kWaits: it waits for room there
    NodeId origin;
    std::uint16_t call;
    std::uint32_t generation;
    std::uint8_t hops = 0;
};

// The context of the call, for an answer to it.
[[nodiscard]] inline wire::CallContext context_of(const Forwarded& call) {
    return {.generation = call.generation, .node = call.origin, .call = call.call, .hops = call.hops};
}

class SentOn {
public:
    // Calls forwarded to one peer; about 170 bytes each.
    static constexpr std::size_t kMax = 16384;
    // Those of one caller at this node.
    static constexpr std::size_t kMaxOfCaller = kMax / 4;
    static constexpr std::uint64_t kWaits = ~std::uint64_t{0};

    // `passes_here`: its caller is at this node, so its answer passes through it. The call has been sent in any case: it is not recorded if
    // there is no memory, or if its answer takes another way and kMax calls are recorded whose answers pass here.
    void add(const Forwarded& call, bool passes_here);
    // It had waited, and is in the mailbox now. Nothing happens where it is not among these any more.
    void sent(const Forwarded& call);
    // False: it is not among these.
    bool answered(NodeId origin, std::uint16_t call, std::uint32_t generation);
    // Its caller has gone.
    void left(NodeId origin);
    // Removes those whose frames end after `position`, or wait, and gives each to `end`, which does not throw. Needs no memory.
    template <typename End>
    void take_untaken(std::uint64_t position, End&& end) {
        take_if([position](const Forwarded& call) { return call.position > position; }, end);
    }
    template <typename End>
    void take_all(End&& end) {
        take_if([](const Forwarded&) { return true; }, end);
    }
    // The others went by a link that has ended: there is no ring any more that their positions would be in.
    void were_taken();
    // Whether another call of a caller at this node is one too many: of its own, or of all such callers'.
    [[nodiscard]] bool is_full_for(NodeId origin, std::uint16_t call) const;
    [[nodiscard]] std::size_t size() const { return calls_.size(); }
    [[nodiscard]] bool empty() const { return calls_.empty(); }

private:
    // First those whose answers do not pass here, then the oldest.
    using Age = std::pair<bool, std::uint64_t>;
    struct Entry {
        Forwarded call;
        Age age;
    };
    using Calls = std::map<std::uint64_t, Entry>;  // by place: those of one caller follow one another
    [[nodiscard]] static std::uint64_t place(NodeId origin, std::uint16_t call) {
        return std::uint64_t{origin} << 16U | call;
    }
    Calls::iterator erase(Calls::iterator call);
    template <typename Which, typename End>
    void take_if(Which&& which, End&& end) {
        static_assert(noexcept(end(std::declval<const Forwarded&>())));
        for (auto each = calls_.begin(); each != calls_.end();) {
            const Forwarded call = each->second.call;
            if (!which(call)) {
                ++each;
                continue;
            }
            each = erase(each);
            end(call);
        }
    }
    Calls calls_;
    std::map<NodeId, std::size_t> count_of_;
    std::map<Age, std::uint64_t> places_by_age_;
    std::uint64_t next_age_ = 0;
    std::size_t passing_ = 0;  // whose answers pass here
};

}  // namespace rove
