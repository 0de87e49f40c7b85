// The result of each numbered call, as its client received it: a file that the client and `life` both map, so that it outlives a client that
// is killed. Each entry has one writer at a time: the thread that made the number, then the one in which the call ends.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace life {

// `life` sets it, the client follows.
enum class Phase : std::uint32_t {
    work,   // send
    calm,   // send no more, wait for all answers
    leave,  // send no more, give up soon what is in flight
};

enum class Kind : std::uint8_t {
    call,
    large,
    inlined,
    batch,
    post,
    in_place,
    forward,
    shelf,
    typed,
    typed_post,
    resident,
    back,
    post_on,
    roll,
    count
};
inline constexpr const char* kKindNames[] = {"call",  "large", "inlined",    "batch",    "post", "in_place", "forward",
                                             "shelf", "typed", "typed_post", "resident", "back", "post_on",  "roll"};

enum class State : std::uint8_t {
    none,
    sending,     // about to be sent, or being sent by a call that waits
    sent,        // in flight
    posted,      // nobody will be told
    answered,    // as it should be
    wrong,       // answered, but not with the right value
    failed,      // by the call's end; `code` says why
    not_sent,    // by what the sending threw
    given_up,    // the client dropped, cancelled or timed it
    unanswered,  // the client has waited for long enough
    count
};
inline constexpr const char* kStateNames[] = {"none",  "sending", "sent",     "posted",   "answered",
                                              "wrong", "failed",  "not sent", "given up", "unanswered"};

// By rove_error.
inline constexpr const char* kCodeNames[] = {"ok",           "invalid",   "refused",   "unsupported", "overloaded",
                                             "disconnected", "timed_out", "cancelled", "failed",      "internal"};

struct Entry {
    std::atomic<State> state;
    Kind kind;
    std::uint8_t code;     // a rove_error
    std::uint8_t target;   // which node it was sent to
    std::uint8_t version;  // that its answer must carry
    std::uint8_t last_step;
    std::uint8_t answer_step, answer_error;
    std::atomic<std::uint8_t> ends;  // how often the client was told of its end
    bool on_purpose;                 // told to fail after having run
    std::uint16_t answered_ms;       // after how long
    std::uint32_t sent_ms;           // of CLOCK_MONOTONIC
};
static_assert(sizeof(Entry) == 16);

// How a client ends, beside 0.
inline constexpr int kStuck = 3, kRollCallFailed = 4;

inline constexpr std::uint32_t kThreadsMax = 4;
// 300 pieces of work a second for 48 minutes; a client that has used them up waits to be sent away. A sparse file.
inline constexpr std::uint32_t kEntriesMax = (1U << 20U) - 64;

struct LedgerHeader {
    std::atomic<Phase> phase;
    std::uint32_t client;  // the upper half of each number
    std::uint32_t build;
    std::atomic<std::uint32_t> used;                // entries
    std::atomic<std::uint32_t> connected;           // to how many nodes so far
    std::atomic<std::uint32_t> finished;            // the client has settled all entries
    std::atomic<std::uint64_t> doing[kThreadsMax];  // the number that each thread is about
};

struct Ledger {
    LedgerHeader header;
    Entry entries[kEntriesMax];

    [[nodiscard]] Entry& of(std::uint64_t number) { return entries[number & 0xFFFF'FFFFU]; }
};

// Maps the file; makes it first where `create`. Ends the process where that fails.
inline Ledger* map_ledger(const std::string& path, bool create) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0600);
    if (file < 0 || (create && ftruncate(file, sizeof(Ledger)) != 0))
        return std::perror(path.c_str()), std::exit(2), nullptr;
    void* memory = mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return std::perror(path.c_str()), std::exit(2), nullptr;
    return static_cast<Ledger*>(memory);
}

}  // namespace life
