// Sleep in epoll until one of a fabric's descriptors is readable or a thread kicks.
//
// Threads: any, after open() has returned. Several may sleep at once. Invariant: a kick ends the sleep of at least one thread, or else the next
// sleep. It may end just one: Baton::wake_up says whether the thread that wakes must kick again for others.
#pragma once

#include <condition_variable>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace rove {

class Sleeper {
public:
    Sleeper() = default;
    ~Sleeper();
    Sleeper(const Sleeper&) = delete;

    [[nodiscard]] Status open(const std::vector<int>& descriptors);
    // Sleeps until a descriptor is readable, a kick, or the deadline (none: for ever). timeout: it was the deadline.
    std::cv_status sleep(std::optional<TimePoint> deadline);
    // Ends the current or the next sleep. Callable from any thread; async-signal-safe.
    void kick() noexcept;

private:
    int epoll_ = -1;
    int event_ = -1;
};

}  // namespace rove
