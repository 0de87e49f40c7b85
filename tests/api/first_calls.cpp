// first_calls: a node, a client of it, and a thread that makes first calls one after the other, each of which has LLVM take a function out
// of this program, while the main thread forks. Each child makes a node of its own and calls a function that it must take out
// itself. Prints how many children were given their answer.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "rove/rove.hpp"

namespace {

constexpr int kChildren = 8;

template <int N>
int plus(int x) {
    return x + N;
}
int twice(int x) {
    return 2 * x;
}

template <int... N>
void call_each(const rove::Peer& peer, const std::atomic<bool>& enough, std::integer_sequence<int, N...> /*which*/) {
    (void)((enough || (peer.sync(rove::fn<plus<N>>, 1), false)) || ...);
}

int in_child(const std::string& address) {
    alarm(40);
    rove::Node own({.log = "off"});
    return own.connect(address).sync(rove::within(std::chrono::seconds(30)), rove::fn<twice>, 21);
}

}  // namespace

int main() {
    rove::Node server({.listen = "127.0.0.1:0", .log = "off"});
    rove::Node client({.log = "off"});
    const rove::Peer peer = client.connect(server.address());
    (void)peer.sync(rove::fn<plus<1000>>, 1);  // the program's bitcode has been read
    std::atomic<bool> enough{false};
    std::thread first([&] { call_each(peer, enough, std::make_integer_sequence<int, 200>()); });
    std::vector<pid_t> children;
    for (int i = 0; i < kChildren; ++i) {
        usleep(4000);
        const pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            int answer = 0;
            try {
                answer = in_child(server.address());
            } catch (const rove::Error& error) {
                std::fprintf(stderr, "%s\n", error.what());
            }
            _exit(answer);
        }
        children.push_back(child);
    }
    enough = true;
    first.join();
    int answered = 0;
    for (const pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        answered += WIFEXITED(status) && WEXITSTATUS(status) == 42 ? 1 : 0;
    }
    std::printf("%d of %d answered\n", answered, kChildren);
}
