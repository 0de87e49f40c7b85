// Handles: what two nodes call a function between them once they have spoken of it by its id.
//
// Threads: under the engine's lock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "peer/lately_known.hpp"

namespace rove {

// Handles of one peer's functions that are kept. A node that uses more of them sends ids again.
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
        const std::uint32_t* const known = by_function_.find(function);
        if (known == nullptr) return std::nullopt;
        place = {function, *known};
        return *known;
    }
    // A handle means one function for as long as its peer lives; a function may have had several. Nothing: it is not known, or no more. Calls
    // by it may be on their way for as long as it is among the last kBindingsMax / 2.
    [[nodiscard]] std::optional<FunctionId> function_of(std::uint32_t handle) const {
        const FunctionId* const known = by_handle_.find(handle);
        return known != nullptr ? std::optional(*known) : std::nullopt;
    }

    // A call was sent by the function's id: the peer may answer with a handle.
    void expect() { ++expected_; }
    // Keeps it if the peer was asked: as many as calls were sent by id, so that what a peer can make this process remember is bounded by
    // what this process has asked.
    void learn(const FunctionId& function, std::uint32_t handle) {
        if (expected_ == 0) return;
        --expected_;
        recent_[place_of(function)] = {};
        by_function_.set(function, handle);
        by_handle_.set(handle, function);
    }
    // The peer does not know this handle of the function any more. What it meant is still known: calls by it may be on their way.
    void forget(const FunctionId& function, std::uint32_t handle) {
        if (handle_of(function) != handle) return;
        recent_[place_of(function)] = {};
        by_function_.erase(function);
    }
    void clear() {
        expected_ = 0;
        by_function_.clear();
        by_handle_.clear();
        recent_ = {};
    }

    [[nodiscard]] std::vector<Bound> all() const {
        std::vector<Bound> all;
        by_function_.for_each(
            [&all](const FunctionId& function, std::uint32_t handle) { all.push_back({function, handle}); });
        return all;
    }
    [[nodiscard]] std::size_t handles() const { return by_handle_.size(); }

private:
    static constexpr std::size_t kRecent = 64;
    [[nodiscard]] static std::size_t place_of(const FunctionId& function) {
        return std::to_integer<std::size_t>(function.raw()[0]) % kRecent;
    }

    std::uint64_t expected_ = 0;
    LatelyKnown<FunctionId, std::uint32_t, kBindingsMax> by_function_;
    LatelyKnown<std::uint32_t, FunctionId, kBindingsMax> by_handle_;
    std::array<Bound, kRecent> recent_{};
};

// What a peer says that handles of this node meant, which this node has forgotten.
class Aliases {
public:
    // Null: it means what it means now. Mostly there are none, and each call asks.
    [[nodiscard]] const FunctionId* find(std::uint32_t handle) const {
        return functions_.empty() ? nullptr : functions_.find(handle);
    }
    void learn(std::uint32_t handle, const FunctionId& function) { functions_.set(handle, function); }
    void clear() { functions_.clear(); }

private:
    LatelyKnown<std::uint32_t, FunctionId, kBindingsMax> functions_;
};

}  // namespace rove
