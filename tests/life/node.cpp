// life_node LISTEN JOIN|- FABRIC ENGINES: a node whose program has some of the numbered work built in. Ends at SIGTERM.
#include <signal.h>

#include <cstdio>
#include <string>

#include "fabrics.hpp"
#include "functions.hpp"

int main(int count, char** arguments) try {
    if (count != 5) return std::fprintf(stderr, "usage: life_node LISTEN JOIN|- FABRIC ENGINES\n"), 2;
    sigset_t ends;
    sigemptyset(&ends);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, signal);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    rove::offer(rove::fn<life::resident_work>);
    rove::NodeOptions options;
    options.listen = arguments[1];
    if (std::string_view(arguments[2]) != "-") options.join = arguments[2];
    options.fabric = life::fabric_of(arguments[3]);
    options.engines = static_cast<unsigned>(std::stoul(arguments[4]));
    options.waiting = rove::Waiting::frugal;
    options.log = "info";
    rove::Node node(options);
    std::printf("listening %s\n", node.address().c_str());
    std::fflush(stdout);
    int signal = 0;
    sigwait(&ends, &signal);
    return 0;
} catch (const rove::Error& error) {
    return std::fprintf(stderr, "life_node: %s\n", error.what()), 1;
}
