// The forms of code, the form in which a function ran, and what loading an interface reports.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rove {

// The forms of a package's code: an image is machine code for one target; bitcode is compiled by the node that receives it. A slice of a
// package has one form, whose value is in the package's file. As an option, which forms of a package are sent and run.
//   both            a function begins on its image at once, and switches to its bitcode once that has been compiled
//   image, bitcode  that form only
enum class Forms : std::uint8_t { image = 1, bitcode = 2, both = image | bitcode };
[[nodiscard]] constexpr bool includes(Forms forms, Forms one) noexcept {
    return (static_cast<unsigned>(forms) & static_cast<unsigned>(one)) != 0;
}

// The form in which a function ran. The values travel on the wire.
enum class RanAs : std::uint8_t { resident = 0, image = 1, bitcode = 2 };
[[nodiscard]] std::string_view to_string(RanAs ran) noexcept;

// Which of an interface's names another interface, or the node itself, has as well. Other names are in neither list.
struct LoadReport {
    // Names that belonged to another interface and belong to this one now: "name (was of package X)". Functions that arrived before remain
    // linked to the old ones.
    std::vector<std::string> replaced;
    // Names that the node's process has itself, such as those of the C library: functions are still linked to the node's own. Only an
    // interface in NodeOptions::packages of that node takes these over.
    std::vector<std::string> kept;
};

}  // namespace rove
