// Notes that both `rove build` and `rove bundle` print about a package. Pure functions.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace rove::toolchain {

// The note on a package whose manifest has no room for the needs of each entry (set_needs()).
inline constexpr std::string_view kNeedsOfAll =
    "its functions need so many names in so many ways that its package says only what all of them need together: on a "
    "node that lacks one of these, none of them runs";

[[nodiscard]] inline std::string without_image(std::string_view why) {
    return fmt::format("{}; it travels as bitcode only, and its first call waits for the compiler", why);
}

// The note about functions of the libraries of C and C++ that do not travel (bitcode/allocation.hpp, ProgramNames). where: "this program", for example. Both may be empty.
inline void warn_of_replaced(const std::function<void(std::string_view)>& warn, const std::set<std::string>& names,
                             std::string_view where) {
    if (!warn || names.empty()) return;
    warn(fmt::format("{} {} replaced in {}: what travels uses the node's", fmt::join(names, ", "),
                     names.size() == 1 ? "is" : "are", where));
}

}  // namespace rove::toolchain
