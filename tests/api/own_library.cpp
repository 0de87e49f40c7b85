// A program that has its own functions instead of some of the C library's. A function that it sends takes them along: not a memcpy() that
// needs a variable of the program, and not what has no bitcode.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "rove/rove.hpp"

double rounded(double x) {
    return std::round(x);
}

std::string joined(std::vector<std::string> words) {  // NOLINT(performance-unnecessary-value-param): it is sent
    std::string all;
    for (const std::string& word : words) all += word;
    return all;
}

double least(double x) {
    return std::floor(x);
}

int main(int, char** arguments) {
    const volatile double x = 2.5;  // clang knows the floor of a constant
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    std::printf("%g %s %g, here %g\n", peer.sync(rove::fn<rounded>, -2.5),
                peer.sync(rove::fn<joined>, std::vector<std::string>{"a few words, ", "and more of them"}).c_str(),
                peer.sync(rove::fn<least>, x), least(x));
}
