// The inner product of two vectors, where they are: the example of the HAM paper (fig. 2), without registration.
#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

#include "rove/rove.hpp"

// There a and b are the node's own memory; here they are rove::Buffers.
double inner_product(std::span<const double> a, std::span<const double> b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

int main(int count, char** arguments) try {
    if (count != 2) return std::fprintf(stderr, "usage: inner_product ADDRESS\n"), 2;
    constexpr std::size_t n = 1024;
    std::vector<double> a(n), b(n, 2.0);
    std::iota(a.begin(), a.end(), 0.0);

    rove::Node node;
    const rove::Peer target = node.connect(arguments[1]);

    // Memory there, and our vectors into it. Both ways at once.
    auto [a_there, b_there] = rove::when_all(target.allocate<double>(n), target.allocate<double>(n)).get();
    rove::when_all(target.put(a, a_there), target.put(b, b_there)).get();

    // Begins the call; do something else while it runs.
    rove::Call<double> result = target.async(rove::fn<inner_product>, a_there, b_there);
    const double expected = inner_product(a, b);

    const double c = result.get();
    std::printf("%.1f\n", c);
    return c == expected ? 0 : 1;
} catch (const rove::Error& error) {
    return std::fprintf(stderr, "inner_product: %s\n", error.what()), 1;
}
