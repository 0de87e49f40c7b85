// Functions that find what the node's program shares. The program there knows neither this one nor its functions.
#include <cstdio>
#include <string>

#include "counts.hpp"
#include "rove/rove.hpp"

int add(rove::Here& here, const std::string& word) {
    auto& counts = here.object<Counts>("counts");
    const std::lock_guard lock(counts.mutex);
    return ++counts.of[word];
}

int main(int count, char** arguments) {
    if (count != 2) return std::fprintf(stderr, "usage: counts_client ADDRESS\n"), 2;
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    for (const std::string word : {"pear", "apple", "pear"})
        std::printf("%s %d\n", word.c_str(), peer.sync(rove::fn<add>, word));
}
