// State in an object of the node's own program, which shares it by a name.
#include <cstdio>

#include "counts.hpp"
#include "rove/rove.hpp"

int main() {
    Counts counts;  // before the node, so that it outlives it
    rove::Node node({.listen = "127.0.0.1:0"});
    node.share("counts", counts);
    std::printf("listening %s\n", node.address().c_str());
    std::fflush(stdout);
    (void)std::getchar();  // serves until its input ends
}
