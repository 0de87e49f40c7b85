// { dg-do run }
// { dg-options "-std=gnu++17 -pthread" }
// Each thread has its own thread_local, which is made when it is first used and destroyed when the thread ends.
#include <atomic>
#include <cstdlib>
#include <thread>

static std::atomic<int> made, destroyed;

struct Counted {
    int value = 5;
    Counted() { ++made; }
    ~Counted() { ++destroyed; }
};
static thread_local Counted counted;
static thread_local int plain = 3;

int main() {
    made = destroyed = 0;
    std::thread([] {
        if (plain != 3) abort();
        plain = 4;
        counted.value += plain;
        if (counted.value != 9) abort();
    }).join();
    if (made != 1 || destroyed != 1 || plain != 3) abort();
}
