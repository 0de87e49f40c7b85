// Handles: the numbers that replace a function's id in the frames between two nodes, once one has named the function to the other by its id.
//
// Threads: under the engine's lock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "peer/lately_known.hpp"

namespace rove {

// Handles of one peer's functions that are kept. A node that uses more of them sends ids again.
inline constexpr std::size_t kBindingsMax = 65536;

// The handles that a peer has given for functions of which this node has sent it the ids. Those that were learnt longest ago are forgotten.
//
// Invariants: of a handle that is used it is known which function it means, because both are learnt and forgotten together. The last
// kBindingsMax / 2 handles that were learnt are known, and at most kBindingsMax are: calls by them may be on their way.
class Bindings {
public:
    struct Bound {
        FunctionId function;  // all zero: none
        std::uint32_t handle = 0;
    };

    // The function that was looked up last among those that share a place with this one. The caller compares its id: this is the fast path.
    [[nodiscard]] const Bound& recent(const FunctionId& function) const { return recent_[place_of(function)]; }
    [[nodiscard]] std::optional<std::uint32_t> handle_of(const FunctionId& function) {
        Bound& place = recent_[place_of(function)];
        if (place.function == function) return place.handle;
        for (const Table* table : {&young_, &old_})
            if (const auto known = table->by_function.find(function); known != table->by_function.end()) {
                place = {function, known->second};
                return known->second;
            }
        return std::nullopt;
    }
    // A handle means one function for as long as its peer lives; a function may have had several. Nothing: the handle is unknown, or was
    // forgotten.
    [[nodiscard]] std::optional<FunctionId> function_of(std::uint32_t handle) const {
        for (const Table* table : {&young_, &old_})
            if (const auto known = table->by_handle.find(handle); known != table->by_handle.end()) return known->second;
        return std::nullopt;
    }

    // A call was sent by the function's id: the peer may answer with a handle.
    void expect() { ++expected_; }
    // Keeps it if the peer was asked: as many as calls were sent by id, so that what a peer can make this process remember is bounded by
    // what this process has asked.
    void learn(const FunctionId& function, std::uint32_t handle) {
        if (expected_ == 0) return;
        --expected_;
        if (young_.is_full()) {
            old_ = std::exchange(young_, {});
            recent_ = {};
        }
        recent_[place_of(function)] = {};
        young_.by_handle[handle] = function;  // first, because memory may run out before the next line
        young_.by_function[function] = handle;
    }
    // The peer does not know this handle of the function any more. What it meant is still known: calls by it may be on their way.
    void forget(const FunctionId& function, std::uint32_t handle) {
        if (handle_of(function) != handle) return;
        recent_[place_of(function)] = {};
        for (Table* table : {&young_, &old_}) table->by_function.erase(function);
    }
    void clear() {
        expected_ = 0;
        young_ = {};
        old_ = {};
        recent_ = {};
    }

    [[nodiscard]] std::vector<Bound> all() const {
        std::vector<Bound> all;
        for (const auto& [function, handle] : young_.by_function) all.push_back({function, handle});
        for (const auto& [function, handle] : old_.by_function)
            if (!young_.by_function.contains(function)) all.push_back({function, handle});
        return all;
    }
    [[nodiscard]] std::size_t handles() const { return young_.by_handle.size() + old_.by_handle.size(); }

private:
    struct Table {
        std::unordered_map<FunctionId, std::uint32_t> by_function;
        std::unordered_map<std::uint32_t, FunctionId> by_handle;
        // A peer may give one handle for many functions.
        [[nodiscard]] bool is_full() const {
            return by_function.size() >= kBindingsMax / 2 || by_handle.size() >= kBindingsMax / 2;
        }
    };
    static constexpr std::size_t kRecent = 64;
    [[nodiscard]] static std::size_t place_of(const FunctionId& function) {
        return std::to_integer<std::size_t>(function.raw()[0]) % kRecent;
    }

    std::uint64_t expected_ = 0;
    Table young_, old_;
    std::array<Bound, kRecent> recent_{};
};

// What a peer may have this node remember of its older handles, of which calls may be on their way. The peer reports those of forgotten ones again.
inline constexpr std::size_t kAliasesMax = 4096;

// Functions that old handles of this node meant, which it has forgotten, as a peer has reported them.
class Aliases {
public:
    // Null: the handle means what it means in this node now. Each call asks this, and mostly there are no aliases.
    [[nodiscard, gnu::always_inline]] const FunctionId* find(std::uint32_t handle) const {
        return functions_.empty() ? nullptr : find_known(handle);
    }
    void learn(std::uint32_t handle, const FunctionId& function) { functions_.set(handle, function); }
    void clear() { functions_.clear(); }

private:
    [[gnu::noinline]] const FunctionId* find_known(std::uint32_t handle) const { return functions_.find(handle); }

    LatelyKnown<std::uint32_t, FunctionId, kAliasesMax> functions_;
};

}  // namespace rove
