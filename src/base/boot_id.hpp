// Identifies the running kernel; shared memory is used only when both sides match, because process numbers and memory files are
// meaningless on another kernel.
//
// Threads: any. It is read once.
#pragma once

#include <cstddef>
#include <string>

namespace rove {

inline constexpr std::size_t kBootIdBytes = 36;

// The kernel's random number for this boot, as text of kBootIdBytes; zeros if it cannot be read.
[[nodiscard]] const std::string& boot_id();

}  // namespace rove
