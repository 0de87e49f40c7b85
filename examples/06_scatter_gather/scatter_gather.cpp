// Scatter and gather: numbers spread over several nodes, worked on by all of them at once, and joined here.
#include <cstdio>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "rove/rove.hpp"

void square_all(std::span<double> numbers) {
    for (double& number : numbers) number *= number;
}

double sum(std::span<const double> numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

int main(int count, char** arguments) try {
    if (count < 2) return std::fprintf(stderr, "usage: scatter_gather ADDRESS…\n"), 2;
    rove::Node node;
    const rove::PeerGroup peers = node.connect(std::vector<std::string>(arguments + 1, arguments + count));

    std::vector<double> numbers(1000 * peers.size());
    std::iota(numbers.begin(), numbers.end(), 1.0);

    // Scatter: each node has a part, and begins to work on it as soon as it is there.
    std::vector<rove::Buffer<double>> parts;
    std::vector<rove::Call<>> squared;
    for (std::size_t i = 0; i < peers.size(); ++i) {
        parts.push_back(peers[i].allocate<double>(1000).get());
        peers[i].put(std::span(numbers).subspan(i * 1000, 1000), parts[i]).get();
        squared.push_back(peers[i].async(rove::fn<square_all>, parts[i]));
    }
    rove::when_all(std::move(squared)).get();

    // Gather.
    double total = 0;
    for (std::size_t i = 0; i < peers.size(); ++i) total += peers[i].sync(rove::fn<sum>, parts[i]);
    const std::string ids = peers
                                .reduce([](rove::Here& here) { return std::to_string(here.node()); },
                                        [](const std::string& a, const std::string& b) { return a + " " + b; })
                                .get();
    std::printf("sum of squares %.0f, on nodes %s\n", total, ids.c_str());
    const double n = static_cast<double>(numbers.size());
    return total == n * (n + 1) * (2 * n + 1) / 6 ? 0 : 1;
} catch (const rove::Error& error) {
    return std::fprintf(stderr, "scatter_gather: %s\n", error.what()), 1;
}
