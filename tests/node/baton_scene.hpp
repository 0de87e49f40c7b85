// The steps of a scene's threads, which hand the lead to each other: see baton_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

namespace rove::baton_model {

enum class Does : std::uint8_t {  // of a function
    short_time,                   // it returns
    long_time,                    // it returns when all others have what they want
    polls,                        // it asks again and again whether its reply is there
    waits,                        // it waits for its reply
    waits_quietly,                // the same under a NoNesting
    ends_thread,                  // pthread_exit
};
enum class Op : std::uint8_t {  // of a thread that is not the node's own; each is for a reply of its own
    wait,
    wait_quietly,
    wait_a_while,  // with a time limit
    finish,        // as nearly all results are fetched: finish_at_once first
    poll,          // Node::poll() until it is there
};
struct Call {
    Does does;
    bool known_long = false;
    bool known_short = false;
};
struct Scene {
    const char* name;
    int own = 0;                // threads of the node's own that run functions
    bool stands_by = false;     // and one that does not
    int in_place = 0;           // of `own`: made in place of those that wait quietly, and not before
    int long_runs_max = 1;      // NodeOptions::threads
    bool takes_over = true;     // NodeOptions::threads > 1
    std::vector<Op> users{};    // one thread each
    std::vector<Call> calls{};  // that arrive here, in this order
    int reply_needs = -1;       // every reply comes after this call has been run: the peer calls back
    bool is_room =
        false;  // what functions wait for is room: they see themselves that it is there, also between two looks
    bool last_answers_first = false;  // the last call's end is the reply that the first one's function waits for
    bool shut_down = false;
    bool sleeps_for_long = true;  // whoever leads and falls asleep
    [[nodiscard]] int owned() const { return own + (stands_by ? 1 : 0); }
};

}  // namespace rove::baton_model
