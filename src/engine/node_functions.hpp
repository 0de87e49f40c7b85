// NodeFunctions: the functions that a node has, by name and by handle, for those that run on it; and those that it has from the start.
//
// Threads: any. A function may be forgotten when another package arrives, and is freed when each engine has been between two frames since
// (CodePlace::let_go). So a look-up takes the lock of any one of the node's engines. No state: that is the code
// cache's.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "code/cache.hpp"
#include "lead/engine_lock.hpp"

namespace rove {

class NodeFunctions {
public:
    explicit NodeFunctions(const std::unique_ptr<code::CodeCache>& cache) : cache_(cache) {}

    // Loads the packages of a folder, interfaces first: functions link to them. An empty path: none.
    [[nodiscard]] Status preload(const std::filesystem::path& folder);
    // Packages that are here, for those that the node meets: at most as many as fit a control message well. For others the code is sent once,
    // which does no harm.
    [[nodiscard]] std::vector<Digest> digests() const;
    // A rove_function; nothing: there is none of that name.
    [[nodiscard]] std::optional<std::uint64_t> find(EngineLock& lock, std::string_view name) const
        EXCLUDES(lock_of<EngineLock>);
    // The id of a rove_function; nullopt: the number is not one, or the function was forgotten.
    [[nodiscard]] std::optional<FunctionId> id_of(EngineLock& lock, std::uint64_t function) const
        EXCLUDES(lock_of<EngineLock>);
    // Keeps its code for as long as the result lives. nullopt: the code has been evicted already.
    [[nodiscard]] std::optional<code::Entered> hold(const code::Function& function) const;

private:
    const std::unique_ptr<code::CodeCache>& cache_;
};

}  // namespace rove
