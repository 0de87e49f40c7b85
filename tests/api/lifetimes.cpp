// A program that ends with Rove's objects in its globals, thread-locals and statics, or forks with them in use.
//   lifetimes globals ADDRESS PACKAGE    prints `filled`; its destructors do the rest
//   lifetimes hold ADDRESS BYTES         allocates and waits to be killed
//   lifetimes fork ADDRESS               has a child that makes a node of its own and ends as programs do; prints `child STATUS`
//   lifetimes share                      a function that travels fills an object of the program, which is asked when its node has ended;
//                                        prints what it says
//   lifetimes early-fork MICROSECONDS    has such a child while a thread makes this process's first node, that long after it has begun
#include "lifetimes.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "../childs_leaks.hpp"

namespace lifetimes {

namespace {

int half(int x) {
    return x / 2;
}
// Of the program, for functions.
struct Kept {
    std::function<int()> asked;
};
int keep(rove::Here& here, int value) {
    here.object<Kept>("kept").asked = [value] { return value + 1; };
    return 1;
}
rove::Task<int> ask(rove::Peer peer) {
    co_return co_await peer.async([] { return 3; });
}
// Ends without a word, or the program ends as a failed test.
template <typename Work>
void cancelled(const char* what, Work&& work) {
    try {
        work();
    } catch (const rove::Error& error) {
        if (error.code() == rove::ErrorCode::cancelled) return;
        std::fprintf(stderr, "%s: %s\n", what, error.what());
        _exit(3);
    }
}

// When it has ended.
void tell_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace

void Objects::fill(const rove::Peer& to, const rove::Entry& entry) {
    peer = to;
    small = to.allocate<int>(10).get();
    large = to.allocate<int>(100'000).get();
    call.emplace(to.async([] { return 1; }));
    allocation.emplace(to.allocate<int>(10));
    (void)to.call(entry).get();  // from here on the peer has a handle for it
    raw.emplace(to.call(entry));
    batch.emplace(to.batch(entry, 8));
    (void)batch->add();
    task.emplace(ask(to));
}

Objects::~Objects() {
    if (!peer) return;
    const std::array<int, 10> ten{};
    cancelled("sync", [&] { (void)peer->sync([] { return 2; }); });
    cancelled("put", [&] { peer->put(ten, *large).get(); });
    cancelled("allocate", [&] { (void)peer->allocate<int>(10).get(); });
    cancelled("get", [&] { (void)call->get(); });
    cancelled("allocation", [&] { (void)allocation->get(); });
    cancelled("raw", [&] { (void)raw->get(); });
    cancelled("task", [&] { (void)rove::sync_wait(std::move(*task)); });
    if (frame) cancelled("frame", [&] { frame->post(); });
}

}  // namespace lifetimes

int main(int count, char** arguments) try {
    using namespace lifetimes;
    if (count == 4 && !std::strcmp(arguments[1], "globals")) {
        const rove::Entry entry = rove::Package::open(arguments[3]).entry("echo");
        thread_local Objects of_thread;
        static Objects local;
        node.emplace();
        other_node.emplace();
        for (Objects* each : {&before_node, &after_node, &of_thread}) each->fill(node->connect(arguments[2]), entry);
        for (Objects* each : {&in_another_file, &local}) each->fill(other_node->connect(arguments[2]), entry);
        // A node of its own: the thread that has begun a frame can send nothing else to the same peer.
        static rove::Node for_frame;
        const rove::Peer peer = for_frame.connect(arguments[2]);
        (void)peer.call(entry).get();
        before_node.frame.emplace(peer.begin(entry, 16));
        std::printf("filled\n");
        return 0;
    }
    if (count == 4 && !std::strcmp(arguments[1], "hold")) {
        rove::Node holder;
        const auto buffer = holder.connect(arguments[2]).allocate<char>(std::stoul(arguments[3])).get();
        std::printf("holds %zu\n", buffer.size());
        std::fflush(stdout);
        for (;;) pause();
    }
    if (count == 3 && !std::strcmp(arguments[1], "fork")) {
        rove::Node parents;
        (void)parents.connect(arguments[2]).sync(rove::fn<half>, 4);
        const pid_t child = fork();
        if (child == 0) {
            alarm(30);
            {
                rove::Node own;
                if (own.connect(arguments[2]).sync(rove::fn<half>, 6) != 3) return 1;
            }
            return 7;
        }
        tell_of(child);
        return 0;
    }
    if (count == 2 && !std::strcmp(arguments[1], "share")) {
        Kept kept;
        {
            rove::Node server({.listen = "127.0.0.1:0", .log = "off"});
            server.share("kept", kept);
            rove::Node client;
            if (client.connect(server.address()).sync(rove::exactly(rove::fn<keep>), 41) != 1) return 1;
        }
        std::printf("%d\n", kept.asked());
        return 0;
    }
    if (count == 3 && !std::strcmp(arguments[1], "early-fork")) {
        std::thread makes([] { const rove::Node first({.listen = "127.0.0.1:0", .log = "off"}); });
        usleep(static_cast<useconds_t>(std::stoul(arguments[2])));
        const pid_t child = fork();
        if (child == 0) {
            alarm(30);
            {
                const rove::Node own({.listen = "127.0.0.1:0", .log = "off"});
            }
            _exit(7);
        }
        tell_of(child);
        makes.join();
        return 0;
    }
    return std::fprintf(stderr,
                        "usage: lifetimes globals ADDRESS PACKAGE | hold ADDRESS BYTES | fork ADDRESS | share | "
                        "early-fork MICROSECONDS\n"),
           2;
} catch (const rove::Error& error) {
    return std::fprintf(stderr, "lifetimes: %s\n", error.what()), 1;
}
