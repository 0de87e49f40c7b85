// CodePlace: an engine's place in its node's code cache, by which its leader enters functions at the cost of two plain stores.
//
// Threads: under the engine's lock. enter() and leave() by the thread that leads; keep() also by one that takes the lead away from it.
//
// Invariants: at most one function is entered here at a time; leave() or keep() ends that. What the engine has looked up in the cache is not
// freed before let_go() is called.
#pragma once

#include <memory>

#include "code/cache.hpp"
#include "code/leading.hpp"
#include "lead/engine_lock.hpp"

namespace rove {

class CodePlace {
public:
    explicit CodePlace(const std::unique_ptr<code::CodeCache>& cache) : cache_(cache) {}

    // Called once, when the node has its cache and before any function runs.
    void take() REQUIRES(lock_of<EngineLock>) { place_ = &cache_->add_leader(); }

    // ---- the leader, for one function at a time
    // Null: its code is not loaded.
    [[nodiscard]] code::EntryPoint enter(code::Function& function) REQUIRES(lock_of<EngineLock>) {
        return cache_->enter_leading(*place_, function);
    }
    void leave() REQUIRES(lock_of<EngineLock>) { cache_->leave_leading(*place_); }
    // Replaces leave() for a function that continues after its thread has lost the lead: the returned object protects its code from then
    // on.
    [[nodiscard]] code::Entered keep() REQUIRES(lock_of<EngineLock>) { return cache_->keep_leading(*place_); }

    // Called in each turn, between frames: forgotten code may be freed, because the engine holds no function that it has looked up and not
    // entered.
    void let_go() REQUIRES(lock_of<EngineLock>) {
        if (place_ != nullptr && !place_->has_let_go()) cache_->let_go(*place_);
    }

private:
    const std::unique_ptr<code::CodeCache>& cache_;  // made when the node starts
    code::Leading* place_ GUARDED_BY(lock_of<EngineLock>) = nullptr;
};

}  // namespace rove
