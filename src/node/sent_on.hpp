// SentOn: the calls that went on to one peer for others, from when they are in its mailbox until they are answered.
//
// Their callers are told where the peer's process goes before that. A call is known by its place in its caller's table: another one from
// there means that the first has ended. Answers to callers at this node pass by here. Of other nodes' callers this one hears nothing where
// the call was sent on once more, so beyond kMax the oldest is forgotten.
//
// Threads: under the node's lock.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/ids.hpp"

namespace rove {

struct Forwarded {
    std::uint64_t position;  // where its frame ends in the peer's ring
    NodeId origin;
    std::uint16_t call;
    std::uint32_t generation;
};

class SentOn {
public:
    // Of one peer; about 160 bytes each.
    static constexpr std::size_t kMax = 16384;
    // Of one caller at this node. More are refused, so that none of them makes another's be forgotten alone.
    static constexpr std::size_t kMaxOfCaller = kMax / 4;

    // It is in the mailbox already: without memory it is not remembered.
    void add(const Forwarded& call);
    // False: it is not among these.
    bool answered(NodeId origin, std::uint16_t call, std::uint32_t generation);
    // Its caller has gone.
    void left(NodeId origin);
    // Removes and gives those whose frames end behind `position`.
    [[nodiscard]] std::vector<Forwarded> take_behind(std::uint64_t position);
    // The others went by a link that has ended: there is no ring any more that their positions would be in.
    void were_taken();
    [[nodiscard]] bool is_full_for(NodeId origin) const;
    [[nodiscard]] std::vector<Forwarded> take_all();
    [[nodiscard]] std::size_t size() const { return calls_.size(); }
    [[nodiscard]] bool empty() const { return calls_.empty(); }

private:
    struct Entry {
        Forwarded call;
        std::uint64_t age;
    };
    using Calls = std::map<std::uint64_t, Entry>;  // by place: those of one caller follow one another
    [[nodiscard]] static std::uint64_t place(NodeId origin, std::uint16_t call) {
        return std::uint64_t{origin} << 16U | call;
    }
    Calls::iterator erase(Calls::iterator call);
    Calls calls_;
    std::map<NodeId, std::size_t> count_of_;
    std::map<std::uint64_t, std::uint64_t> places_by_age_;
    std::uint64_t next_age_ = 0;
};

}  // namespace rove
