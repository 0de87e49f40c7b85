// Which kernel this is: process numbers, memory files and shared memory mean nothing to another machine, nor to a container with a
// kernel of its own.
#pragma once

#include <cstddef>
#include <string>

namespace rove {

inline constexpr std::size_t kBootIdBytes = 36;

// The kernel's random number for this boot, as text of kBootIdBytes; zeros where it cannot be read.
[[nodiscard]] const std::string& boot_id();

}  // namespace rove
