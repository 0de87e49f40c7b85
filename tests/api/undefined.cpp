// A function that a sanitizer's checks keep from travelling: they refer to variables of their own.
#include <cstdio>

#include "rove/rove.hpp"

int shifted(int number, int by) {
    return number << by;
}

int main(int, char** arguments) {
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    try {
        std::printf("%d\n", peer.sync(rove::fn<shifted>, 1, 3));
    } catch (const rove::Error& error) {
        std::printf("%s: %s\n", std::string(rove::to_string(error.code())).c_str(), error.what());
    }
}
