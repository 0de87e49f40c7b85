// State in memory on the node that this program allocates, and gives to its functions.
#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

#include "rove/rove.hpp"

void scale(std::span<double> values, double by) {
    for (double& value : values) value *= by;
}
double sum(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

int main(int count, char** arguments) {
    if (count != 2) return std::fprintf(stderr, "usage: scale ADDRESS\n"), 2;
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    std::vector<double> values{1, 2, 3};
    const auto there = peer.allocate<double>(values.size()).get();  // zeros
    peer.put(values, there).get();
    peer.sync(rove::fn<scale>, there, 10.0);                   // the function is given the memory itself
    std::printf("%g\n", peer.sync(rove::fn<sum>, there));      // 60
    std::printf("%g\n", peer.sync(rove::fn<sum>, there + 1));  // 50: all but the first
    peer.get(there, values).get();
    std::printf("%g %g %g\n", values[0], values[1], values[2]);  // 10 20 30
}  // the memory is freed with the last Buffer that refers to it
