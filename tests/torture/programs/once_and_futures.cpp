// { dg-do run }
// { dg-options "-std=gnu++17 -pthread" }
// call_once, async, promise and packaged_task, with an exception that crosses threads.
#include <cstdlib>
#include <future>
#include <mutex>
#include <stdexcept>

int main() {
    std::once_flag flag;
    int times = 0;
    for (int i = 0; i < 3; ++i) std::call_once(flag, [&] { ++times; });
    if (times != 1) abort();

    if (std::async(std::launch::async, [] { return 40; }).get() + 2 != 42) abort();

    std::promise<int> promise;
    promise.set_exception(std::make_exception_ptr(std::runtime_error("sent on")));
    try {
        promise.get_future().get();
        abort();
    } catch (const std::runtime_error&) {
    }

    std::packaged_task<int(int)> task([](int i) { return i * i; });
    auto square = task.get_future();
    task(7);
    if (square.get() != 49) abort();
}
