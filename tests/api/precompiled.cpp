// Functions under a precompiled header. ROVE_BOTH: two files send a static function of one name.
#include "precompiled.hpp"

static int above(int x) {
    return x + 20;
}
static int same(int x) {
    return x + 100;
}

int main(int, char** arguments) {
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    std::printf("lambda %d\n", peer.sync([](int x) { return x + 10; }, 1));
    std::printf("static %d\n", peer.sync(rove::fn<above>, same(-99)));
    std::printf("named %d\n", peer.sync(rove::named<"tests.precompiled">([](int x) { return x + 30; }), 1));
    std::printf("too %d\n", too(peer));
#ifdef ROVE_BOTH
    std::printf("never %d\n", peer.sync(rove::fn<same>, 1));
#endif
    return 0;
}
