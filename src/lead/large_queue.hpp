// LargeQueue: the order in which threads send large payloads to a peer: one after the other, as they have asked. Two payloads sent at the same time
// would hold twice the memory there, and arrive no earlier.
//
// But a thread that waits may run functions on top of its wait, and those may wait, by way of other nodes, for a payload that another
// thread sends to the same peer. So a place whose thread runs a function on top is *beneath*, and later ones pass it: none ever waits for a
// thread that may wait for it.
//
// Threads: under the engine's lock. Invariants: a Place is in `waiting_` until it begins, in `begun_` until it ends, and then in neither. Both
// lists point to places on the stacks of their threads, so a place ends before it is destroyed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rove {

class LargeQueue {
public:
    // One payload's place in the queue: it waits from its construction until it begins, and ends once. It is on the stack of the thread that sends.
    class Place {
    public:
        explicit Place(LargeQueue& queue) : queue_(queue) { queue_.waiting_.push_back(this); }
        Place(const Place&) = delete;
        ~Place() { end(); }
        // Whether its payload is sent next: every place that began or asked before it has ended or is beneath.
        [[nodiscard]] bool is_next() const {
            const auto in_the_way = [](const Place* other) { return !other->is_beneath(); };
            const auto mine = std::find(queue_.waiting_.begin(), queue_.waiting_.end(), this);
            return std::none_of(queue_.begun_.begin(), queue_.begun_.end(), in_the_way) &&
                   std::none_of(queue_.waiting_.begin(), mine, in_the_way);
        }
        void begin() {
            std::erase(queue_.waiting_, this);
            queue_.begun_.push_back(this);
        }
        void end() {
            std::erase(queue_.waiting_, this);
            std::erase(queue_.begun_, this);
        }
        // Called around each function that runs on top of this one's thread.
        void go_beneath() { ++functions_; }
        void come_up() { --functions_; }

    private:
        [[nodiscard]] bool is_beneath() const { return functions_ > 0; }
        LargeQueue& queue_;
        std::size_t functions_ = 0;
    };

    [[nodiscard]] std::size_t begun() const { return begun_.size(); }

private:
    std::vector<Place*> waiting_;  // in the order in which they asked
    std::vector<Place*> begun_;    // more than one only if all but one are beneath, or were when the others began
};

}  // namespace rove
