#include "node/options.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <thread>

namespace rove {
namespace {

constexpr std::array<std::string_view, 6> kLogLevels{"trace", "debug", "info", "warn", "error", "off"};

// The value of an enum that may have been made of any number.
template <typename E>
Status check_choice(std::string_view option, E value, E last, std::string_view choices, E first = {}) {
    if (value >= first && value <= last) return {};
    return fail(ErrorCode::invalid, "option {} is {}, which is none of its choices: {}", option,
                static_cast<unsigned>(value), choices);
}

unsigned cores_of_process() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    // Fails where the machine has more cores than fit into this.
    const int cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
    return cores > 0 ? static_cast<unsigned>(cores) : std::max(1U, std::thread::hardware_concurrency());
}

bool has_possible_engines(const NodeOptions& options) {
    return options.engines == kEnginesAuto || (options.engines >= 1 && options.engines <= kEnginesMax);
}

}  // namespace

unsigned engines_of(const NodeOptions& options) {
    if (options.engines == kEnginesAuto) return options.own_thread ? std::min(cores_of_process(), kEnginesAutoMax) : 1;
    return has_possible_engines(options) ? options.engines : 1;
}

Status check_options(const NodeOptions& options) {
    if (!options.join.empty() && options.listen.empty())
        return fail(ErrorCode::invalid, "to join {} a node must listen: give it an address of its own", options.join);
    if (options.threads < 1 || options.threads > kThreadsMax)
        return fail(ErrorCode::invalid, "option threads is {}: a node has 1 to {} threads of its own", options.threads,
                    kThreadsMax);
    if (!has_possible_engines(options))
        return fail(ErrorCode::invalid, "option engines is {}: a node has 1 to {} engines, or auto", options.engines,
                    kEnginesMax);
    if (!options.own_thread && engines_of(options) > 1)
        return fail(ErrorCode::invalid,
                    "option engines is {}, and own_thread is false: several engines need threads of the node's own",
                    options.engines);
    if (std::find(kLogLevels.begin(), kLogLevels.end(), options.log) == kLogLevels.end())
        return fail(ErrorCode::invalid, "option log is '{}', which is none of its choices: {}", options.log,
                    fmt::join(kLogLevels, ", "));
    if (options.connect_timeout.count() <= 0)
        return fail(ErrorCode::invalid, "option connect_timeout is {} ms: it must be more than 0",
                    options.connect_timeout.count());
    if (options.grace.count() < 0)
        return fail(ErrorCode::invalid, "option grace is {} ms: it must be 0 or more", options.grace.count());
    if (options.packages_max == 0)
        return fail(ErrorCode::invalid, "option packages_max is 0: a node that runs functions knows at least 1");
    ROVE_CHECK(check_choice("waiting", options.waiting, Waiting::frugal, "latency, balanced, frugal"));
    ROVE_CHECK(check_choice("fabric", options.fabric, kFabricWords.back().choice,
                            fmt::format("{}", fmt::join(fabric_words(), ", "))));
    return check_choice("forms", options.forms, Forms::both, "both, image, bitcode", Forms::image);
}

}  // namespace rove
