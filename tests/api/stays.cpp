// Functions that cannot travel, and one that keeps a static of its own and can.
#include <cstdio>
#include <string>

#include "rove/rove.hpp"

int counter = 0;
thread_local int of_this_thread = 0;

inline thread_local std::string made_in_thread = "by code";  // NOLINT: it is what is tested

int length_in_thread() {
    return static_cast<int>(made_in_thread.size());
}
int count() {
    return ++counter;
}
int count_in_thread() {
    return ++of_this_thread;
}
// As large as an object of an empty class, and none: its methods see what is in it.
class Flag {
public:
    void set() { is_set_ = true; }
    [[nodiscard]] bool is_set() const { return is_set_; }

private:
    bool is_set_ = false;
};
static Flag flag;
bool flag_is_set() {
    return flag.is_set();
}
__attribute__((init_priority(200))) inline std::string made_early = "by code that runs early";  // NOLINT: as above
namespace stays {
__attribute__((init_priority(300))) inline std::string made_later = "in a namespace";  // NOLINT: as above
}
int length_of_early() {
    return static_cast<int>(made_early.size());
}
int length_of_later() {
    return static_cast<int>(stays::made_later.size());
}
alignas(8192) constexpr int kAligned[] = {1, 2, 3};
int aligned() {
    const volatile int* const values = kAligned;
    return values[1];
}
struct Nothing {
    [[nodiscard]] int four() const { return 4; }
};
static Nothing nothing;
int four() {
    return nothing.four();
}
int count_there() {
    static int calls = 0;  // the node's own, wherever that is
    return ++calls;
}

// Travels, and calls one back that need not.
int asks_back(rove::Here& here) {
    return here.caller().sync(rove::fn<count>);
}
int asks_itself(rove::Here& here) {
    return here.peer(here.node()).sync(rove::fn<count>);
}

// Two that send one another, of which the second stays at home, and one that sends the first.
int first_in_circle(rove::Here& here, int n);
int second_in_circle(rove::Here& here, int n) {
    counter += n;
    return n <= 0 ? counter : here.caller().sync(rove::fn<first_in_circle>, n - 1);
}
int first_in_circle(rove::Here& here, int n) {
    return n <= 0 ? 41 : here.caller().sync(rove::fn<second_in_circle>, n - 1);
}
int sends_circle(rove::Here& here) {
    return here.peer(here.node()).sync(rove::fn<first_in_circle>, 0);
}

template <typename F>
void try_it(const rove::Peer& peer, F function) {
    try {
        std::printf("%d\n", peer.sync(function));
    } catch (const rove::Error& error) {
        std::printf("%s: %s\n", std::string(rove::to_string(error.code())).c_str(), error.what());
    }
}

int main(int, char** arguments) {
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    try_it(peer, rove::fn<count>);
    counter = 100;
    std::printf("back home ");
    try_it(peer, rove::fn<asks_back>);
    std::printf("and there ");
    try_it(peer, rove::fn<asks_itself>);
    std::printf("of a circle ");
    try_it(peer, rove::fn<sends_circle>);
    try_it(peer, rove::fn<count_in_thread>);
    try_it(peer, rove::fn<length_in_thread>);
    flag.set();
    try_it(peer, rove::fn<flag_is_set>);
    try_it(peer, rove::fn<aligned>);
    try_it(peer, rove::fn<length_of_early>);
    try_it(peer, rove::fn<length_of_later>);
    std::printf("without state %d\n", peer.sync(rove::fn<four>));
    std::printf("own statics");
    for (int i = 0; i < 3; ++i) std::printf(" %d", peer.sync(rove::fn<count_there>));
    std::printf("\n");
}
