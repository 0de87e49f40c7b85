// Futures and std::call_once: libstdc++ passes the work to them in thread-locals of its own.
#include <rove/rove.h>

#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

template <typename Work>
void answer(rove_here* here, Work work) {
    try {
        const int result = work();
        rove_reply(here, &result, sizeof result);
    } catch (const std::exception& error) {
        rove_fail(here, error.what());
    }
}

std::once_flag begun;
int beginnings = 0;

}  // namespace

ROVE_ENTRY void async(rove_here* here, const void*, size_t) {
    answer(here, [] {
        int base = 20;
        auto first = std::async(std::launch::async, [&base] { return base + 1; });
        auto second = std::async(std::launch::deferred, [&base] { return base + 1; });
        return first.get() + second.get();
    });
}

ROVE_ENTRY void promise(rove_here* here, const void*, size_t) {
    answer(here, [] {
        std::promise<std::string> word;
        auto future = word.get_future();
        std::thread other([&word] { word.set_value("a word that is too long for the small buffer"); });
        const std::string got = future.get();
        other.join();
        return static_cast<int>(got.size());
    });
}

ROVE_ENTRY void broken(rove_here* here, const void*, size_t) {
    answer(here, [] {
        std::promise<int> number;
        auto future = number.get_future();
        std::thread([&number] {
            number.set_exception(std::make_exception_ptr(std::runtime_error("it broke")));
        }).join();
        return future.get();
    });
}

ROVE_ENTRY void packaged(rove_here* here, const void*, size_t) {
    answer(here, [] {
        std::packaged_task<int(int)> task([](int n) { return n * n; });
        auto future = task.get_future();
        std::thread other(std::move(task), 9);
        other.join();
        return future.get();
    });
}

// The first attempt fails, and so another one is made; over all calls one succeeds.
ROVE_ENTRY void once(rove_here* here, const void*, size_t) {
    answer(here, [] {
        int failures = 0;
        for (int i = 0; i < 3; ++i) {
            try {
                std::call_once(begun, [&] {
                    if (failures == 0) throw std::runtime_error("not yet");
                    ++beginnings;
                });
            } catch (const std::runtime_error&) {
                ++failures;
            }
        }
        return beginnings * 10 + failures;
    });
}
