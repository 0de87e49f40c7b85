// Functions that travel and have thread-local variables of their own, or hand work to other threads.
#include <cstdio>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "rove/rove.hpp"

std::string count_in_thread(int more) {
    thread_local int calls = 40;
    thread_local std::string kept = "calls:";
    calls += more;
    return kept += " " + std::to_string(calls);
}

std::string in_new_thread(int more) {
    return std::async(std::launch::async, count_in_thread, more).get();
}

int await(int n) {
    std::promise<int> given;
    std::future<int> number = given.get_future();
    std::thread giver([&given, n] { given.set_value(n); });
    std::packaged_task<int(int)> twice([](int x) { return 2 * x; });
    std::future<int> doubled = twice.get_future();
    twice(number.get());
    giver.join();
    return doubled.get();
}

int once() {
    static std::once_flag flag;
    static int begun = 0;
    int failures = 0;
    for (int i = 0; i < 3; ++i) {
        try {
            std::call_once(flag, [&failures] {
// Whose pthread_once() does not come back where the function throws, in any program.
#if !__has_feature(thread_sanitizer)
                if (failures == 0) throw std::runtime_error("not yet");
#endif
                ++begun;
            });
        } catch (const std::runtime_error&) {
            ++failures;
        }
    }
    return begun * 10 + failures;
}

int main(int, char** arguments) {
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    std::printf("%s\n", peer.sync(rove::fn<count_in_thread>, 1).c_str());
    std::printf("%s\n", peer.sync(rove::fn<count_in_thread>, 1).c_str());
    for (int i = 0; i < 2; ++i) std::printf("%s\n", peer.sync(rove::fn<in_new_thread>, 2).c_str());
    std::printf("%d ", peer.sync(rove::fn<await>, 21));
    std::printf("%d ", peer.sync(rove::fn<once>));
    std::printf("%d\n", peer.sync(rove::fn<once>));
}
