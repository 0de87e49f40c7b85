// Compiled with -D_GLIBCXX_DEBUG, which makes another type of each container: a program that has such ones and uses librove.so, with
// the functions that may be used then.
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "rove/rove.hpp"

#ifndef _GLIBCXX_DEBUG
#error "this program is about -D_GLIBCXX_DEBUG"
#endif

int multiply(int a, int b) {
    return a * b;
}
std::size_t length(const std::string& text) {
    return text.size();
}

int main(int /*count*/, char** arguments) {
    std::map<std::string, std::vector<int>> own{{"numbers", {1, 2, 3}}};
    rove::Node node;
    const rove::PeerGroup group = node.connect({arguments[1], arguments[1]});
    const rove::Peer peer = group[0];
    const int product = peer.sync(rove::fn<multiply>, 6, 7);
    if (peer.sync(rove::fn<length>, std::string("four")) != 4) return 1;
    std::vector<int> products = group.broadcast(rove::fn<multiply>, 2, 3).get();
    if (std::accumulate(products.begin(), products.end(), 0) != 12) return 1;
    std::vector<double> there_and_back(1000, 2.5);
    const rove::Buffer<double> buffer = peer.allocate<double>(there_and_back.size()).get();
    peer.put(there_and_back, buffer).get();
    peer.get(buffer, there_and_back).get();
    if (there_and_back.back() != 2.5 || own["numbers"].back() != 3) return 1;
    try {
        (void)node.connect("127.0.0.1:1");
        return 1;
    } catch (const rove::Error& error) {  // thrown by librove.so
        if (error.code() != rove::ErrorCode::disconnected) return 1;
    }
    std::printf("6 times 7 is %d there, too\n", product);
}
