// Handles: what two nodes call a function between them once they have spoken of it by its id.
//
// Threads: under the engine's lock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/ids.hpp"

namespace rove {

// Functions whose handles are kept. A node that uses more of one peer's functions sends ids again.
inline constexpr std::size_t kBindingsMax = 65536;

// The handles that a peer has given for functions of which this node has sent it the ids.
class Bindings {
public:
    struct Bound {
        FunctionId function;  // all zero: none
        std::uint32_t handle = 0;
    };

    // What was asked for last among the functions that share a place with this one. Compare its id: the fast path's look-up.
    [[nodiscard]] const Bound& recent(const FunctionId& function) const { return recent_[place_of(function)]; }
    [[nodiscard]] std::optional<std::uint32_t> handle_of(const FunctionId& function) {
        Bound& place = recent_[place_of(function)];
        if (place.function == function) return place.handle;
        const auto known = by_function_.find(function);
        if (known == by_function_.end()) return std::nullopt;
        place = {function, known->second};
        return known->second;
    }
    // A handle means one function for as long as its peer lives; a function may have had several.
    [[nodiscard]] std::optional<FunctionId> function_of(std::uint32_t handle) const {
        const auto known = by_handle_.find(handle);
        return known != by_handle_.end() ? std::optional(known->second) : std::nullopt;
    }

    // A call was sent by the function's id: the peer may answer with a handle.
    void expect() { ++expected_; }
    // Keeps it if the peer was asked: as many as calls were sent by id, so that what a peer can make this process remember is bounded by
    // what this process has asked.
    void learn(const FunctionId& function, std::uint32_t handle) {
        if (expected_ == 0) return;
        --expected_;
        if (by_handle_.size() >= kBindingsMax) {
            by_function_.clear();
            by_handle_.clear();
            recent_ = {};
        }
        recent_[place_of(function)] = {};
        by_function_[function] = handle;
        by_handle_[handle] = function;
    }
    // The peer does not know this handle of the function any more. What it meant is still known: calls by it may be on their way.
    void forget(const FunctionId& function, std::uint32_t handle) {
        const auto known = by_function_.find(function);
        if (known == by_function_.end() || known->second != handle) return;
        recent_[place_of(function)] = {};
        by_function_.erase(known);
    }
    void clear() {
        expected_ = 0;
        by_function_.clear();
        by_handle_.clear();
        recent_ = {};
    }

    [[nodiscard]] const std::unordered_map<FunctionId, std::uint32_t>& all() const { return by_function_; }
    [[nodiscard]] std::size_t handles() const { return by_handle_.size(); }

private:
    static constexpr std::size_t kRecent = 64;
    [[nodiscard]] static std::size_t place_of(const FunctionId& function) {
        return std::to_integer<std::size_t>(function.raw()[0]) % kRecent;
    }

    std::uint64_t expected_ = 0;
    std::unordered_map<FunctionId, std::uint32_t> by_function_;
    std::unordered_map<std::uint32_t, FunctionId> by_handle_;
    std::array<Bound, kRecent> recent_{};
};

// What a peer says that handles of this node meant, which this node has forgotten or given to other functions since.
class Aliases {
public:
    // Null: it means what it means now. Mostly there are none, and each call asks.
    [[nodiscard]] const FunctionId* find(std::uint32_t handle) const {
        if (functions_.empty()) return nullptr;
        const auto known = functions_.find(handle);
        return known != functions_.end() ? &known->second : nullptr;
    }
    void learn(std::uint32_t handle, const FunctionId& function) {
        if (functions_.size() >= kBindingsMax) functions_.clear();
        functions_[handle] = function;
    }
    void clear() { functions_.clear(); }

private:
    std::unordered_map<std::uint32_t, FunctionId> functions_;
};

}  // namespace rove
