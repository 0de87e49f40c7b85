// Hello: a function of this program runs on a node that has never seen it.
//
//   rove node --listen 127.0.0.1:7400 &
//   hello 127.0.0.1:7400
#include <unistd.h>

#include <cstdio>
#include <string>

#include "rove/rove.hpp"

std::string greet(rove::Here& here, const std::string& name) {
    return "Hello, " + name + ", from node " + std::to_string(here.node()) + ", process " + std::to_string(getpid());
}

int main(int count, char** arguments) try {
    if (count != 2) return std::fprintf(stderr, "usage: hello ADDRESS\n"), 2;
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    std::printf("%s\n", peer.sync(rove::fn<greet>, "reader").c_str());
    std::printf("6 times 7 is %d there, too\n", peer.sync([](int a, int b) { return a * b; }, 6, 7));
} catch (const rove::Error& error) {
    return std::fprintf(stderr, "hello: %s\n", error.what()), 1;
}
