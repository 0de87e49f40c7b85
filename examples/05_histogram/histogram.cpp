// A histogram of a file's bytes, counted on another node by a lambda that captures what it looks for.
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <vector>

#include "rove/rove.hpp"

using Histogram = std::array<std::uint64_t, 256>;

int main(int count, char** arguments) try {
    if (count != 3) return std::fprintf(stderr, "usage: histogram ADDRESS FILE\n"), 2;
    std::ifstream file(arguments[2], std::ios::binary);
    if (!file) return std::fprintf(stderr, "histogram: %s cannot be read\n", arguments[2]), 1;
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};

    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    const auto there = peer.allocate<char>(bytes.size()).get();
    peer.put(bytes, there).get();

    // Captures travel with the lambda: values, not pointers.
    const unsigned char first = ' ', last = '~';
    const Histogram printable = peer.sync(
        [first, last](std::span<const char> text) {
            Histogram counts{};
            for (const char c : text)
                if (const auto byte = static_cast<unsigned char>(c); byte >= first && byte <= last) ++counts[byte];
            return counts;
        },
        there);

    std::uint64_t all = 0;
    for (std::size_t byte = 0; byte < printable.size(); ++byte) {
        if (printable[byte] > 0)
            std::printf("%c %llu\n", static_cast<char>(byte), static_cast<unsigned long long>(printable[byte]));
        all += printable[byte];
    }
    std::printf("%llu of %zu bytes can be printed\n", static_cast<unsigned long long>(all), bytes.size());
} catch (const rove::Error& error) {
    return std::fprintf(stderr, "histogram: %s\n", error.what()), 1;
}
