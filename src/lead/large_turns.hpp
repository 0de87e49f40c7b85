// The order in which threads send large payloads to a peer: one after the other, as they have asked. Two payloads sent at the same time
// would hold twice the memory there, and arrive no earlier.
//
// But a thread that waits may run functions on top of its wait, and those may wait, by way of other nodes, for a payload that another
// thread sends to the same peer. So a turn that has a function on top of it is *beneath*, and later turns pass it: no turn ever waits for a
// thread that may wait for that turn.
//
// Threads: under the engine's lock. Invariants: a Turn is in `waiting_` until it begins, in `begun_` until it ends, and then in neither. Both
// lists point to turns on the stacks of their threads, so a turn ends before it is destroyed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rove {

class LargeTurns {
public:
    // One payload's turn: it waits from its construction until it begins, and ends once. It is on the stack of the thread that sends.
    class Turn {
    public:
        explicit Turn(LargeTurns& turns) : turns_(turns) { turns_.waiting_.push_back(this); }
        Turn(const Turn&) = delete;
        ~Turn() { end(); }
        // Whether it is this one's turn: every turn that began or asked before it has ended or is beneath.
        [[nodiscard]] bool is_next() const {
            const auto in_the_way = [](const Turn* other) { return !other->is_beneath(); };
            const auto mine = std::find(turns_.waiting_.begin(), turns_.waiting_.end(), this);
            return std::none_of(turns_.begun_.begin(), turns_.begun_.end(), in_the_way) &&
                   std::none_of(turns_.waiting_.begin(), mine, in_the_way);
        }
        void begin() {
            std::erase(turns_.waiting_, this);
            turns_.begun_.push_back(this);
        }
        void end() {
            std::erase(turns_.waiting_, this);
            std::erase(turns_.begun_, this);
        }
        // Called around each function that runs on top of this one's thread.
        void go_beneath() { ++functions_; }
        void come_up() { --functions_; }

    private:
        [[nodiscard]] bool is_beneath() const { return functions_ > 0; }
        LargeTurns& turns_;
        std::size_t functions_ = 0;
    };

    [[nodiscard]] std::size_t begun() const { return begun_.size(); }

private:
    std::vector<Turn*> waiting_;  // in the order in which they asked
    std::vector<Turn*> begun_;    // more than one only if all but one are beneath, or were when the others began
};

}  // namespace rove
