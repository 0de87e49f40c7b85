// SentOn: the calls that went on to one peer for others, from when they were sent, or wait for room, until they are answered.
//
// Their callers are told where the peer's process goes before that. A call is known by its place in its caller's table: another one from
// there means that the first has ended. Answers to callers at this node pass by here. Of other nodes' callers this one may hear nothing:
// the oldest of theirs are forgotten first.
//
// Threads: under the engine's lock.
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

// Of its frame: what an answer to it needs.
[[nodiscard]] inline wire::FrameHeader header_of(const Forwarded& call) {
    return {.generation = call.generation, .node = call.origin, .call = call.call, .hops = call.hops};
}

class SentOn {
public:
    // Of one peer; about 170 bytes each.
    static constexpr std::size_t kMax = 16384;
    // Of one caller at this node.
    static constexpr std::size_t kMaxOfCaller = kMax / 4;
    static constexpr std::uint64_t kWaits = ~std::uint64_t{0};

    // `passes_here`: its caller is at this node, so its answer comes by. The call has been sent, whatever happens here: without memory it
    // is not remembered, and one whose answer passes elsewhere is not when kMax are known whose answers pass here.
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
    // Those whose answers do not pass here come first, then the oldest.
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
