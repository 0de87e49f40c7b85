// Built with -fno-exceptions: what it calls travels all the same.
#include <cstdio>

#include "rove/rove.hpp"

namespace {

int square(int x) {
    return x * x;
}
std::string twice(const std::string& text) {
    return text + text;
}
struct OfThree {  // no default constructor
    explicit OfThree(int x) : number(x) {}
    int number;
};
int sum(const std::vector<OfThree>& values) {
    int total = 0;
    for (const OfThree& each : values) total += each.number;
    return total;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return 2;
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    if (peer.sync(rove::fn<square>, 7) != 49 || peer.sync(rove::fn<twice>, std::string("ab")) != "abab") return 1;
    if (peer.sync(rove::fn<sum>, std::vector<OfThree>{OfThree(3), OfThree(4)}) != 7) return 1;
    std::printf("all is well\n");
    return 0;
}
