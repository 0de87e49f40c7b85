// Reverse offload: a function on a node calls back into the program that called it, for something that only that one has.
#include <cstdio>
#include <map>
#include <string>

#include "rove/rove.hpp"

// Runs here: it asks for an object that only this program shares.
double price_of(rove::Here& here, const std::string& article) {
    return here.object<std::map<std::string, double>>("prices").at(article);
}

// Runs there, and asks back while it does. Its thread serves the node while it waits, so that two nodes may ask each other.
double total(rove::Here& here, const std::map<std::string, int>& order) {
    double sum = 0;
    for (const auto& [article, pieces] : order) sum += pieces * here.caller().sync(rove::fn<price_of>, article);
    return sum;
}

int main(int count, char** arguments) try {
    if (count != 2) return std::fprintf(stderr, "usage: reverse ADDRESS\n"), 2;
    std::map<std::string, double> prices{{"apple", 0.25}, {"pear", 0.5}};
    rove::Node node;
    node.share("prices", prices);
    const rove::Peer peer = node.connect(arguments[1]);
    std::printf("%.2f\n", peer.sync(rove::fn<total>, std::map<std::string, int>{{"apple", 4}, {"pear", 3}}));

    // What is thrown here is thrown there, and thrown again here, as the same type.
    try {
        (void)peer.sync(rove::fn<total>, std::map<std::string, int>{{"quince", 1}});
    } catch (const rove::RemoteError& error) {
        std::printf("no quinces: %s\n", error.type().c_str());
    }
} catch (const rove::Error& error) {
    return std::fprintf(stderr, "reverse: %s\n", error.what()), 1;
}
