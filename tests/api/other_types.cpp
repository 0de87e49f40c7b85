// A program that means something else by forms::Item than the node's does.
#include <chrono>
#include <cstdio>

#include "rove/rove.hpp"

namespace forms {

struct Item {
    std::vector<double> prices;
    std::string name;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(prices, name);
    }
};
Item cheaper(Item item, double factor) {
    for (double& price : item.prices) price *= factor;
    return item;
}

struct Reading {
    std::chrono::seconds at;
    __int128 wide;
    int sensor;
    unsigned value;
};
int square(int x) {
    return x * x * x;
}
double scaled(Reading reading) {
    return reading.value;
}

}  // namespace forms

void try_square(const rove::Peer& peer) try {
    std::printf("theirs %d", peer.sync(rove::fn<forms::square>, 3));
    std::printf(" %d\n", peer.sync(rove::fn<forms::square>, 4));
    std::printf("exactly mine %d", peer.sync(rove::exactly(rove::fn<forms::square>), 3));
    std::printf(" %d\n", peer.async(rove::exactly(rove::fn<forms::square>), 4).get());
} catch (const rove::Error& error) {
    std::printf("%s: %s\n", std::string(rove::to_string(error.code())).c_str(), error.what());
}

int main(int count, char** arguments) {
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    if (count > 2) return try_square(peer), 0;
    // Large arguments of calls that are refused do not pile up there: 300 MiB would end the link.
    for (int i = 0; i < 300; ++i) {
        try {
            (void)peer.sync(rove::fn<forms::cheaper>, forms::Item{std::vector<double>(131'072), ""}, 0.5);
        } catch (const rove::Error& error) {
            if (error.code() == rove::ErrorCode::invalid) continue;
            std::printf("%s\n", error.what());
            return 1;
        }
    }
    try {
        const forms::Item item = peer.sync(rove::fn<forms::cheaper>, forms::Item{{2, 4}, "pear"}, 0.5);
        std::printf("%s %g %g\n", item.name.c_str(), item.prices[0], item.prices[1]);
    } catch (const rove::Error& error) {
        std::printf("%s: %s\n", std::string(rove::to_string(error.code())).c_str(), error.what());
    }
    try {
        std::printf("%g\n", peer.sync(rove::fn<forms::scaled>, forms::Reading{{}, 0, 1, 2}));
    } catch (const rove::Error& error) {
        std::printf("%s: %s\n", std::string(rove::to_string(error.code())).c_str(), error.what());
    }
}
