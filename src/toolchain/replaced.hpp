// The one sentence that `rove build` and `rove bundle` say of allocation functions that stay at home (bitcode/allocation.hpp).
#pragma once

#include <fmt/format.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace rove::toolchain {

// where: "this program", for example. Both may be empty.
inline void warn_of_replaced(const std::function<void(std::string_view)>& warn, const std::set<std::string>& names,
                             std::string_view where) {
    if (!warn || names.empty()) return;
    warn(fmt::format("{} {} replaced in {}: what travels uses the node's", fmt::join(names, ", "),
                     names.size() == 1 ? "is" : "are", where));
}

}  // namespace rove::toolchain
