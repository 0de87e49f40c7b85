// Work that no node's program has built in: its code travels from the clients, whose builds differ. Not to be included by the node
// program, because whatever a program's functions call is enrolled in it.
#pragma once

#include "functions.hpp"

namespace life {

inline Answer typed_work(rove::Here& here, const Head& head, const std::string& body) {
    return run_here(here, head, body);
}

// Step 1 runs in the client that called.
inline Answer at_home(rove::Here& here, const Head& head) {
    return run_here(here, head, {});
}
inline Answer call_back(rove::Here& here, Head head) {
    Answer answer = run_here(here, head, {});
    ++head.step;
    try {
        answer = here.caller().sync(rove::fn<at_home>, head);
    } catch (const rove::Error& error) {
        answer.error = static_cast<int>(error.code());
    }
    return answer;
}

// Step 1 is posted to another node; nobody is told of its end.
inline Answer post_on(rove::Here& here, Head head, const std::string& body) {
    Answer answer = run_here(here, head, body);
    ++head.step;
    head.left = 0;
    try {
        here.peer(head.stops[0]).post(rove::fn<typed_work>, head, body);
    } catch (const rove::Error& error) {
        answer.error = static_cast<int>(error.code());
    }
    return answer;
}

}  // namespace life
