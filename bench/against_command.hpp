// A command of the user's as a yardstick: it runs in turns with Rove, on the same two cores, and prints its figure.
//
// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "bench/shapes.hpp"

namespace rove::bench {

// How long one run of the command may take, and how much it may print to each of its outputs.
inline constexpr std::chrono::seconds kCommandTimeMax{60};
inline constexpr std::size_t kCommandOutputBytesMax = 1024 * 1024;

// The lines `KEY=NUMBER` that a command prints.
inline constexpr const char* kMedianKey = "p50_ns";
inline constexpr const char* kRateKey = "per_second";
inline constexpr const char* kFirstCallKey = "first_ns";

// Runs the command in a shell on the two cores, and returns the number that it prints after `key`. Its environment has ROVE_BENCH_BYTES (the
// payload), ROVE_BENCH_CLIENT_CORE and ROVE_BENCH_NODE_CORE, so that its two sides can do as Rove's do. Whatever it has started in its process
// group ends with it. Throws rove::Error.
//   failed     it ends with a status other than 0, prints too much, no such line or several, or a value that is no positive number
//   timed_out  it is not done when `time_max` is over
//   cancelled  a signal arrived (toolchain::Interruptible)
[[nodiscard]] double figure_of_command(const std::string& command, const std::string& key, std::size_t bytes,
                                       std::chrono::milliseconds time_max = kCommandTimeMax);

// The same of --against-command, or nothing without it. Called before Rove's part of a round: a command with a mistake is found before minutes of
// measuring.
[[nodiscard]] std::optional<double> command_figure(const Settings& settings, const std::string& key, std::size_t bytes);

}  // namespace rove::bench
