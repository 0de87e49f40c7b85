// SIGTERM, SIGINT and SIGHUP for `rove node`. While it starts, the first one ends the process at once: nothing is served yet, and
// what the start waits for (a package's constructor, a node that does not answer) may never end. While it serves, the first one
// is the word to end in order; a second one ends the process at once, and so does a limit where shipped code keeps the node.
//
// Threads: one waits for the signals, so that they count whatever all others are at. The functions are the main thread's.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

namespace rove::tools {

class EndSignals {
public:
    // One in a process. `limit`: from the first signal to the process's end. overloaded: no thread can be had.
    explicit EndSignals(std::chrono::seconds limit);
    // From here on the node serves.
    void serving();
    // The first signal since then; nothing: none came in that time. Each time, shipped code that handles or ignores them is overruled.
    [[nodiscard]] std::optional<int> wait_for(std::chrono::milliseconds time);

private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace rove::tools
