// Checks NodeOptions: one place for programs, the C ABI and the command's flags.
#pragma once

#include <array>
#include <chrono>
#include <ranges>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "rove/node.hpp"

namespace rove {

// The words for how a node reaches others, in every place where one chooses.
inline constexpr std::array<std::pair<std::string_view, FabricChoice>, 4> kFabricWords{
    {{"best", FabricChoice::best}, {"shm", FabricChoice::shm}, {"tcp", FabricChoice::tcp}, {"ucx", FabricChoice::ucx}}};
inline constexpr auto fabric_words() {
    return std::views::keys(kFabricWords);
}

// Functions that run long at once: each has a thread with a stack of 8 MiB of addresses, 512 MiB together.
inline constexpr unsigned kThreadsMax = 64;

// Ten years: a longer time counts as this. The clock's time plus four times this does not overflow.
inline constexpr std::chrono::milliseconds kOptionTimeMax = std::chrono::hours(10 * 366 * 24);

// invalid: an option is outside its choices or range; the message names both.
[[nodiscard]] Status check_options(const NodeOptions& options);

}  // namespace rove
