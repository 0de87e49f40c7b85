// expect: rove: put() and get() copy a contiguous range of the buffer's own element type
#include <rove/rove.hpp>
#include <vector>

void f(const rove::Peer& peer, const rove::Buffer<int>& buffer) {
    const std::vector<double> from(8);
    (void)peer.put(from, buffer);
}
