// One of its functions is too large for a package's image. The others travel as ever, and it travels as bitcode.
#include <cstdio>

#include "rove/rove.hpp"

namespace {

int small(int x) {
    return x + 1;
}
int large(int x) {
    static const int kValues[(1U << 24U) - 20] = {
        4, 5};  // 64 MiB, less than the limit, and more with all else in its image
    return kValues[x];
}

}  // namespace

int main(int, char** arguments) {
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    std::printf("small %d\n", peer.sync(rove::fn<small>, 1));
    std::printf("large %d\n", peer.sync(rove::fn<large>, 1));
}
