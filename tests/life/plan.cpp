#include "plan.hpp"

#include <random>

namespace life {
namespace {

// Out of 100.
Trouble choose(unsigned which) {
    if (which < 16) return Trouble::client_leaves;
    if (which < 30) return Trouble::client_killed;
    if (which < 40) return Trouble::client_stopped;
    if (which < 55) return Trouble::client_more;
    if (which < 65) return Trouble::client_cut;
    if (which < 73) return Trouble::node_killed;
    if (which < 78) return Trouble::node_ended;
    if (which < 88) return Trouble::node_stopped;
    return Trouble::nodes_cut;
}

}  // namespace

Plan plan_of(std::uint64_t seed, std::chrono::milliseconds length, double hard) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t bound) { return static_cast<unsigned>(random() % bound); };
    Plan plan;
    plan.resident = below(kNodes);
    plan.survivor = below(kNodes);
    for (unsigned& threads : plan.threads) threads = 1 + below(4);
    for (unsigned i = 0; i < kClientsAtFirst; ++i) plan.first_seeds.push_back(random() >> 8U);
    const auto longest = static_cast<std::uint64_t>(600 / hard);
    std::chrono::milliseconds at(0);
    for (;;) {
        at += std::chrono::milliseconds(1 + below(longest));
        if (at >= length) return plan;
        Event event{.at = at,
                    .trouble = choose(below(100)),
                    .who = below(kClientsMax),
                    .other = 1 + below(kNodes - 1),
                    .lasts = {},
                    .seed = random() >> 8U};
        event.lasts = std::chrono::milliseconds(100 + below(1'900));
        if (event.trouble == Trouble::node_killed || event.trouble == Trouble::node_ended) {
            event.who = (plan.survivor + event.other) % kNodes;
            event.lasts = std::chrono::milliseconds(below(800));
        } else if (event.trouble >= Trouble::node_killed) {
            event.who = event.who % kNodes;
        }
        plan.events.push_back(event);
    }
}

}  // namespace life
