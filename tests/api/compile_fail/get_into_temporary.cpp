// expect: rove: get() would write into a temporary
#include <rove/rove.hpp>
#include <vector>

void f(const rove::Peer& peer, const rove::Buffer<int>& buffer) {
    (void)peer.get(buffer, std::vector<int>(8));
}
