// Thread-local variables of C++: with values, with addresses, over-aligned, and objects that are made and destroyed in each thread.
#include <rove/rove.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace {

std::atomic<int> destroyed{0};
int shared = 5;

struct Words {
    std::string text{"a text that is too long for the small buffer"};
    ~Words() { ++destroyed; }
};

thread_local Words words;
thread_local struct {
    char first = 1;
    int* to = &shared;
    const char* name = "name";
} with_addresses;
alignas(128) thread_local unsigned char wide[128] = {7};

int of_this_thread(int more) {
    thread_local int calls = 40;
    thread_local std::string kept(3, 'x');
    kept += "y";
    calls += more;
    words.text += "z";
    *with_addresses.to += 1;
    return calls + static_cast<int>(kept.size()) + static_cast<int>(words.text.size()) + wide[0] +
           static_cast<int>(reinterpret_cast<std::uintptr_t>(wide) % 128) + with_addresses.name[0] - 'n';
}

}  // namespace

// As often as a thread is new: 41 + 4 + 45 + 7.
ROVE_ENTRY void in_new_threads(rove_here* here, const void*, size_t) {
    int answers[4] = {};
    for (int i = 0; i < 3; ++i) std::thread([&answers, i] { answers[i] = of_this_thread(1); }).join();
    answers[3] = destroyed.exchange(0);
    rove_reply(here, answers, sizeof answers);
}

// For a node of the caller's own process: when this thread ends, one is added where the payload says.
ROVE_ENTRY void tells_of_its_end(rove_here* here, const void* payload, size_t) {
    struct AtEnd {
        int* count = nullptr;
        std::string text{"a text that is too long for the small buffer"};
        ~AtEnd() { *count += text.size() == 44 ? 1 : 100; }
    };
    thread_local AtEnd at_end;
    at_end.count = *static_cast<int* const*>(payload);
    rove_reply(here, nullptr, 0);
}

ROVE_ENTRY void in_this_thread(rove_here* here, const void*, size_t) {
    const int answer = of_this_thread(1);
    rove_reply(here, &answer, sizeof answer);
}
