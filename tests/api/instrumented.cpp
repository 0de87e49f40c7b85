// Compiled with what a programmer adds for coverage, profiles and hardening: its functions travel without.
#include <cstdio>
#include <string>

#include "rove/rove.hpp"

struct Animal {
    virtual ~Animal() = default;
    [[nodiscard]] virtual int legs() const = 0;
};
struct Spider final : Animal {
    [[nodiscard]] int legs() const override { return 8; }
};

__attribute__((noinline)) int legs_of(const Animal& animal) {
    return animal.legs();
}

int square(int x) {
    if (x < 0) return 0;
    return x * x + legs_of(Spider()) - 8;
}

std::string twice(std::string text) {  // NOLINT(performance-unnecessary-value-param): the callers' parameter
    char both[64] = {};
    return text + std::string(both, static_cast<std::size_t>(std::snprintf(both, sizeof both, "%s", text.c_str())));
}

int main(int, char** arguments) {
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    // Often enough for the bitcode to have taken the image's place.
    for (int i = 0; i < 20000; ++i)
        if (peer.sync(rove::fn<square>, 6) != 36) return 1;
    std::printf("%s %d\n", peer.sync(rove::fn<twice>, "ab").c_str(), peer.sync(rove::fn<square>, 7));
}
