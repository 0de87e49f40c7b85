// Checks NodeOptions: one place for programs, the C ABI and the command's flags.
#pragma once

#include <array>
#include <chrono>
#include <ranges>
#include <string_view>

#include "base/result.hpp"
#include "rove/node.hpp"

namespace rove {

// How a node reaches others: the words for that, in every place where one chooses, in the order of FabricChoice.
struct FabricWord {
    std::string_view word;
    FabricChoice choice;
    std::string_view help;
};
inline constexpr std::array<FabricWord, 4> kFabricWords{
    {{"best", FabricChoice::best, "(default) shared memory on one machine, else a stream over sockets"},
     {"shm", FabricChoice::shm, "shared memory only"},
     {"tcp", FabricChoice::tcp, "a stream over sockets only"},
     {"ucx", FabricChoice::ucx, "UCX, for trusted networks only: whoever reaches its port can take over the process"}}};
inline constexpr auto fabric_words() {
    return std::views::transform(kFabricWords, &FabricWord::word);
}

// Functions that run long at once: each has a thread with a stack of 8 MiB of addresses, 512 MiB together.
inline constexpr unsigned kThreadsMax = 64;

// Each may have a core of its own, and takes some 1.5 MiB of tables and stacks when it has worked.
inline constexpr unsigned kEnginesMax = 64;
// With more, meetings spread peers too thinly to be worth the threads; who has more cores says how many.
inline constexpr unsigned kEnginesAutoMax = 16;
// How many engines a node with these options has. 1, where check_options() refuses them.
[[nodiscard]] unsigned engines_of(const NodeOptions& options);

// Ten years: a longer time counts as this. The clock's time plus four times this does not overflow.
inline constexpr std::chrono::milliseconds kOptionTimeMax = std::chrono::hours(10 * 366 * 24);

// invalid: an option is outside its choices or range; the message names both.
[[nodiscard]] Status check_options(const NodeOptions& options);

}  // namespace rove
