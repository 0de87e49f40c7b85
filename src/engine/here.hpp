// The call that a function runs for, and its node: the body of rove/rove.h's opaque rove_here.
//
// Threads: one at a time: the one in which the function runs, or, of a copy that was kept to answer later, the one that has the copy.
// Invariant: while `ended` is set nothing is answered: the call has its answer, or its frame has not arrived yet (`gathering`).
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "code/cache.hpp"
#include "services/memory.hpp"
#include "wire/frame.hpp"

namespace rove {
class Gathering;
class Engine;
class NodeCore;
}  // namespace rove

struct rove_here {
    rove::Engine* engine;
    const rove::code::Function* function;
    rove::wire::CallContext call;  // of the call that runs
    rove::RanAs ran;
    bool ended = false;
    std::vector<std::shared_ptr<rove::Block>> blocks{};     // buffers that it uses
    std::atomic<bool>* payload_read = nullptr;              // where to note that; null: the payload is not in a mailbox
    std::atomic<rove::TimePoint>* large_read_at = nullptr;  // where to note when; null: the payload is in one frame
    std::unique_ptr<std::byte[]> payload{};                 // a copy of it
    rove::Gathering* gathering = nullptr;                   // where it is still arriving when the function begins
    bool answer_lost = false;  // memory ran out for what the function answered: its call is no success then
    [[nodiscard]] rove::NodeCore& node() const;
    // It holds something of its call, so the next call of the same function needs one of its own.
    [[nodiscard]] bool has_left_something() const { return !blocks.empty() || payload || answer_lost; }
    // Nothing of it may be used any more: the call has ended, or this is the child of a fork, whose parent has the node.
    [[nodiscard]] bool is_over() const;
};
