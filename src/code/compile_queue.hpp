// CompileQueue: the packages whose bitcode waits for the compiler.
//
// Threads: under the lock of the cache.
//
// Invariants: a package is in it exactly while its `compile` is `queued`, and once. Packages without code are compiled first, because calls wait
// for them. Among these the nodes take turns: before a node's next package at most two of every other node that waits are compiled, because LLVM
// may take two minutes for one (bitcode::Bounds). A package has one turn, the earliest of those that its askers could take. The node that sent
// the package takes a turn only if no node waits for it, because any node may send what others are about to call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <tuple>
#include <utility>

#include "code/package_code.hpp"

namespace rove::code {

class CompileQueue {
public:
    [[nodiscard]] bool empty() const REQUIRES(lock_of<CodeCache>) { return queue_.empty(); }
    // It takes a turn of the node package.compiled_for.
    void push(PackageCode& package) REQUIRES(lock_of<CodeCache>) {
        package.compile_turn = next_turn(package.compiled_for, package.loaded());
        queue_.push_back(&package);
        package.compile = PackageCode::Compile::queued;
    }
    // Notes that this node waits for the package, too. Does nothing if it is not queued, has code, or has a turn no later than that node's
    // next, so it may be called any number of times.
    void add_asker(PackageCode& package, NodeId asker) REQUIRES(lock_of<CodeCache>) {
        if (package.compile != PackageCode::Compile::queued || package.loaded()) return;
        const std::uint64_t turn = next_turn(asker, false);
        if (turn >= package.compile_turn) return;
        package.compile_turn = turn;
        package.compiled_for = asker;
    }
    // The next package, which is compiled from now on. Precondition: there is one.
    [[nodiscard]] PackageCode& begin() REQUIRES(lock_of<CodeCache>) {
        const auto order = [this](const PackageCode& each) REQUIRES(lock_of<CodeCache>) {
            return std::tuple(each.loaded(), each.compile_turn, each.compiled_for == served_);
        };
        const auto next = std::min_element(queue_.begin(), queue_.end(),
                                           [&](const PackageCode* a, const PackageCode* b)
                                               REQUIRES(lock_of<CodeCache>) { return order(*a) < order(*b); });
        PackageCode& package = **next;
        queue_.erase(next);
        served_ = package.compiled_for;
        if (!package.loaded()) turn_ = std::max(turn_, package.compile_turn);
        package.compile = PackageCode::Compile::begun;
        return package;
    }
    // Removes a package for which no call waits any more, and returns its digest. It may be queued again. Nothing: there is none.
    [[nodiscard]] std::optional<Digest> leave_in_vain() REQUIRES(lock_of<CodeCache>) {
        const auto found =
            std::find_if(queue_.begin(), queue_.end(),
                         [](const PackageCode* each) REQUIRES(lock_of<CodeCache>) { return each->waits_in_vain(); });
        if (found == queue_.end()) return std::nullopt;
        const Digest digest = (*found)->store->digest();
        (*found)->compile = PackageCode::Compile::none;
        queue_.erase(found);
        return digest;
    }
    // The package is not compiled, unless it is queued again.
    void leave(PackageCode& package) REQUIRES(lock_of<CodeCache>) {
        if (package.compile != PackageCode::Compile::queued) return;
        std::erase(queue_, &package);
        package.compile = PackageCode::Compile::none;
    }

    // Modules were evicted. The compiler frees their memory when no package waits for it.
    void note_evicted() REQUIRES(lock_of<CodeCache>) { has_evicted_ = true; }
    [[nodiscard]] bool has_evicted() const REQUIRES(lock_of<CodeCache>) { return has_evicted_; }
    [[nodiscard]] bool take_evicted() REQUIRES(lock_of<CodeCache>) { return std::exchange(has_evicted_, false); }

private:
    // A node's packages take one turn each, from the next one on, so a node that asks later precedes each waiting package at most once.
    [[nodiscard]] std::uint64_t next_turn(NodeId node, bool loaded) const REQUIRES(lock_of<CodeCache>) {
        std::uint64_t turn = turn_ + 1;
        for (const PackageCode* each : queue_)
            if (each->compiled_for == node && each->loaded() == loaded) turn = std::max(turn, each->compile_turn + 1);
        return turn;
    }

    std::deque<PackageCode*> queue_ GUARDED_BY(lock_of<CodeCache>);
    bool has_evicted_ GUARDED_BY(lock_of<CodeCache>) = false;
    // The node for which the last package was compiled, and the turn of the last package for which calls waited.
    NodeId served_ GUARDED_BY(lock_of<CodeCache>) = kNoNode;
    std::uint64_t turn_ GUARDED_BY(lock_of<CodeCache>) = 0;
};

}  // namespace rove::code
