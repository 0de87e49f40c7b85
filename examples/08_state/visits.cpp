// State in a function's own static: each node that the function is sent to has one.
#include <atomic>
#include <cstdio>

#include "rove/rove.hpp"

int visit() {
    static std::atomic<int> visits{0};  // a node runs functions in several threads
    return ++visits;
}

int main(int count, char** arguments) {
    if (count != 2) return std::fprintf(stderr, "usage: visits ADDRESS\n"), 2;
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    for (int i = 0; i < 3; ++i) std::printf("%d\n", peer.sync(rove::fn<visit>));
}
