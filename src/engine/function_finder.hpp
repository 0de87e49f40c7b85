// FunctionFinder: which function a call's frame names, where it does not do so by a handle of this node: by an id, by what the caller's and
// this program may both have, or by code within the frame.
//
// Threads: under the engine's lock.
//
// Invariants: code that arrives in frames is run from this node's copy, and as a function seen before only where all bytes are the same and the
// cache still has that function loaded. A peer whose inline code is wrong is cut off.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "code/cache.hpp"
#include "peer/code_arrival.hpp"
#include "peer/own_functions.hpp"
#include "peer/sender.hpp"

namespace rove {

class FunctionFinder {
public:
    // The parts of the node that this one uses. They outlive it.
    struct Beside {
        const NodeOptions& options;
        const std::unique_ptr<code::CodeCache>& cache;  // made when the node starts
        OwnFunctions& own_functions;
        Sender& sender;
        std::function<std::string()> name;  // of this node, for messages
    };
    explicit FunctionFinder(Beside beside)
        : options_(beside.options),
          cache_(beside.cache),
          own_functions_(beside.own_functions),
          sender_(beside.sender),
          name_(std::move(beside.name)) {}

    // By the first bytes of the frame's extension.
    [[nodiscard]] static FunctionId named_in(const wire::Frame& frame) {
        return FunctionId::from(frame.extra.first<sizeof(FunctionId)>());
    }
    // Null: its code is not here.
    [[nodiscard]] code::Function* by_id(const FunctionId& function) REQUIRES(lock_of<EngineLock>);
    // A function of the caller's program: this program's own, where it has it and means the same by it; else the one that travels. Null: its
    // code is not here. invalid: the two programs mean other types by it. unsupported: it does not travel.
    [[nodiscard]] Result<code::Function*> by_either(const wire::Either& either) REQUIRES(lock_of<EngineLock>);
    // Code that came in the frame. If its bytes equal those that were loaded for this function before, the loaded copy is run: the peer cannot
    // change it, it is in the instruction cache, and the mailbox need not be executable. Null: what came is no such code; the link is broken
    // then. overloaded: this node has no room for it.
    [[nodiscard]] Result<code::Function*> in_line(PeerState& from, const wire::Frame& frame)
        REQUIRES(lock_of<EngineLock>);
    // Tells the peer the handle of a function, by the name that it used.
    void bind(PeerState& peer, const FunctionId& named, const code::Function& function) REQUIRES(lock_of<EngineLock>);
    // Why a node that listens nowhere runs no code of others.
    [[nodiscard]] Error takes_no_code() const;

private:
    [[nodiscard]] code::Function* own_shipped(const FunctionId& function) REQUIRES(lock_of<EngineLock>);

    const NodeOptions& options_;
    const std::unique_ptr<code::CodeCache>& cache_;
    OwnFunctions& own_functions_;
    Sender& sender_;
    const std::function<std::string()> name_;
    std::array<SeenInline, 64> seen_inline_;  // by some bits of the function's id
};

}  // namespace rove
